"""The cells of a model that no other one beats in everything at once (the Pareto front)."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from tunegate.artifacts.studies import FrontCell, StudyCell
from tunegate.study.cell_energy import cell_energy
from tunegate.study.measured import MODEL, TARGET, as_key


def fronts(cells: Sequence[StudyCell]) -> tuple[FrontCell, ...]:
    """One front for each model on each target, the fastest first."""
    groups: dict[tuple[str, str], list[FrontCell]] = {}
    for cell in cells:
        if cell.launches:
            place = cell.setting.get(MODEL, ""), cell.setting.get(TARGET, "")
            groups.setdefault(place, []).append(_point(cell))
    return tuple(point for group in groups.values() for point in _front(group))


def _front(group: Sequence[FrontCell]) -> Iterator[FrontCell]:
    """Declared watts times the time say nothing beside the time, and are not compared."""
    is_counted = all(each.energy_source not in (None, "declared") for each in group)
    for point in sorted(group, key=lambda each: (each.ms, as_key(each.setting))):
        if not any(_beats(other, point, with_energy=is_counted) for other in group):
            yield point


def _point(cell: StudyCell) -> FrontCell:
    energy = cell_energy(cell)
    return FrontCell(
        setting=cell.setting,
        ms=statistics.median(launch.ms for launch in cell.launches),
        error_percent=0.0 if cell.error is None else cell.error.center,
        size_bytes=cell.size_bytes,
        memory_bytes=int(statistics.median(launch.peak_bytes for launch in cell.launches)),
        joules=energy.joules,
        energy_source=energy.source,
    )


def _beats(one: FrontCell, other: FrontCell, *, with_energy: bool) -> bool:
    """Says whether one is as good in everything, and better in something."""
    ours, theirs = (_values(each, with_energy=with_energy) for each in (one, other))
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


def _values(point: FrontCell, *, with_energy: bool) -> tuple[float, ...]:
    joules = [point.joules or 0.0] if with_energy else []
    return point.ms, point.error_percent, point.size_bytes, point.memory_bytes, *joules
