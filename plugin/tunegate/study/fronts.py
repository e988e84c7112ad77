"""The cells of a model that no other one beats in everything at once (the Pareto front)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tunegate.artifacts.studies import FrontCell, StudyCell
from tunegate.study.measured import MODEL, TARGET, as_key


def fronts(cells: Sequence[StudyCell]) -> tuple[FrontCell, ...]:
    """One front for each model on each target, the fastest first."""
    groups: dict[tuple[str, str], list[FrontCell]] = {}
    for cell in cells:
        if cell.launches:
            place = cell.setting.get(MODEL, ""), cell.setting.get(TARGET, "")
            groups.setdefault(place, []).append(_point(cell))
    return tuple(
        point
        for group in groups.values()
        for point in sorted(group, key=lambda each: (each.ms, as_key(each.setting)))
        if not any(_beats(other, point) for other in group)
    )


def _point(cell: StudyCell) -> FrontCell:
    return FrontCell(
        setting=cell.setting,
        ms=statistics.median(launch.ms for launch in cell.launches),
        error_percent=0.0 if cell.error is None else cell.error.center,
        size_bytes=cell.size_bytes,
        memory_bytes=int(statistics.median(launch.peak_bytes for launch in cell.launches)),
    )


def _beats(one: FrontCell, other: FrontCell) -> bool:
    """Says whether one is as good in everything, and better in something."""
    ours, theirs = _values(one), _values(other)
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


def _values(point: FrontCell) -> tuple[float, ...]:
    return point.ms, point.error_percent, point.size_bytes, point.memory_bytes
