"""The cells of a model that no other one beats in everything at once (the Pareto front)."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence

from tunegate_study.design.cell_energy import cell_energy
from tunegate_study.design.measured import MODEL, TARGET, as_key
from tunegate_study.studies import FrontCell, StudyCell

_ALIKE = 1.02
"""Values closer than this count as equal, as in the choice of what ships."""


def fronts(cells: Sequence[StudyCell]) -> tuple[FrontCell, ...]:
    """Returns one front per model and target, the fastest first."""
    groups: dict[tuple[str, str], list[FrontCell]] = {}
    for cell in cells:
        if cell.launches:
            place = cell.setting.get(MODEL, ""), cell.setting.get(TARGET, "")
            groups.setdefault(place, []).append(_point(cell))
    return tuple(point for group in groups.values() for point in _front(group))


def _front(group: Sequence[FrontCell]) -> Iterator[FrontCell]:
    """Yields the cells of a front; energy is compared if every cell has it."""
    is_counted = all(each.joules is not None for each in group)
    columns = zip(*(_values(each, with_energy=is_counted) for each in group), strict=True)
    ranks = list(zip(*map(_ranks, columns), strict=True))
    by_time = sorted(range(len(group)), key=lambda n: (group[n].ms, as_key(group[n].setting)))
    for number in by_time:
        if not any(_beats(other, ranks[number]) for other in ranks):
            yield group[number]


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


def _beats(first: Sequence[int], second: Sequence[int]) -> bool:
    """Returns whether one is as good in everything, and better in something."""
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def _ranks(values: Sequence[float]) -> tuple[int, ...]:
    """Returns the rank of each value, shared by close neighbours: saving a few bytes must not make
    a cell that takes five times as long count as good."""
    ordered = sorted(set(values))
    rank, ranks = 0, {ordered[0]: 0}
    for last, value in itertools.pairwise(ordered):
        rank += value > last * _ALIKE
        ranks[value] = rank
    return tuple(ranks[value] for value in values)


def _values(point: FrontCell, *, with_energy: bool) -> tuple[float, ...]:
    joules = [point.joules or 0.0] if with_energy else []
    return point.ms, point.error_percent, point.size_bytes, point.memory_bytes, *joules
