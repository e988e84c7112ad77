"""Flips of rank: the best choice of one axis depends on another. Tuning changes which layout is the
best, or the best with one thread is not the best with two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby

import msgspec

from tunegate_study.design.contrasts import FAMILY_ERROR, Contrast, Sample, contrast, holm_p_values
from tunegate_study.design.measured import (
    MODEL,
    TARGET,
    THREADS,
    VARIANT,
    MeasuredCell,
    as_key,
    without,
)
from tunegate_study.design.model_matrix import varied_axes
from tunegate_study.studies import Axis, CellSetting, RankFlip

_GIVEN = (MODEL, VARIANT, TARGET, THREADS)
"""The workload and its machine, which are no choice of how to compute."""


class _Seen(msgspec.Struct, frozen=True):
    """The two bests of one setting; `chances` counts how often a flip could have been seen
    there."""

    flip: RankFlip
    chance: float
    chances: int


def rank_flips(axes: Sequence[Axis], cells: Sequence[MeasuredCell]) -> tuple[RankFlip, ...]:
    """Returns the flips that are clear, however many were possible: each of the two best levels
    beats the other where it is the best."""
    seen = [
        each
        for axis in varied_axes(axes)
        for ranked in _choices_of_axes(axes, axis.name)
        for each in _flips_of_axis(cells, axis.name, ranked)
    ]
    raw = [min(1.0, each.chance * each.chances) for each in seen]
    return tuple(
        msgspec.structs.replace(each.flip, p_value=p_value)
        for each, p_value in zip(seen, holm_p_values(raw), strict=True)
        if p_value < FAMILY_ERROR
    )


def _choices_of_axes(axes: Sequence[Axis], changing: str) -> list[tuple[str, ...]]:
    """Each other axis by itself, and all of them together."""
    others = [a.name for a in varied_axes(axes) if a.name not in (changing, *_GIVEN)]
    together = [tuple(others)] if len(others) > 1 else []
    return [*((name,) for name in others), *together]


def _flips_of_axis(
    cells: Sequence[MeasuredCell], axis: str, ranked: tuple[str, ...]
) -> Iterator[_Seen]:
    def around(cell: MeasuredCell) -> tuple[tuple[str, str], ...]:
        return as_key(without(cell.setting, (axis, *ranked)))

    for _, group in groupby(sorted(cells, key=around), key=around):
        by_level: dict[str, list[MeasuredCell]] = {}
        for cell in group:
            by_level.setdefault(cell.setting[axis], []).append(cell)
        for one, other in combinations(by_level, 2):
            yield from _between(axis, ranked, (one, other), by_level)


def _between(
    axis: str,
    ranked: tuple[str, ...],
    levels: tuple[str, str],
    by_level: Mapping[str, Sequence[MeasuredCell]],
) -> Iterator[_Seen]:
    """Compares the best of both levels among the choices that both have. If a choice was measured
    at only one level, and is faster there, no best is known."""
    first, second = (_choices(by_level[level], ranked) for level in levels)
    both = [choice for choice in first if choice in second]
    if len(both) < 2:  # noqa: PLR2004 -- one choice has no rank
        return
    before = min(both, key=lambda choice: first[choice].paired.mean)
    after = min(both, key=lambda choice: second[choice].paired.mean)
    won = _behind(first[after].paired, first[before].paired)
    lost = _behind(second[before].paired, second[after].paired)
    # A tie is no flip, but was a chance for one.
    is_flip = before != after and _is_best(before, first) and _is_best(after, second)
    chance = max(won.p_value, lost.p_value) / 2 if is_flip else 1.0
    flip = RankFlip(
        axis=axis,
        levels=levels,
        ranked=ranked,
        best=(dict(before), dict(after)),
        setting=_other_setting(first[before], axis, ranked),
        faster_percent=(-won.percent().center, -lost.percent().center),
        p_value=1.0,
    )
    yield _Seen(flip, chance, len(both) * (len(both) - 1))


def _is_best(
    choice: tuple[tuple[str, str], ...], cells: Mapping[tuple[tuple[str, str], ...], MeasuredCell]
) -> bool:
    return cells[choice].paired.mean == min(cell.paired.mean for cell in cells.values())


def _choices(
    cells: Sequence[MeasuredCell], ranked: tuple[str, ...]
) -> dict[tuple[tuple[str, str], ...], MeasuredCell]:
    return {as_key({name: cell.setting[name] for name in ranked}): cell for cell in cells}


def _other_setting(cell: MeasuredCell, axis: str, ranked: tuple[str, ...]) -> CellSetting:
    return without(cell.setting, (axis, *ranked))


def _behind(loser: Sample, winner: Sample) -> Contrast:
    """Returns the winner against the loser."""
    if loser == winner:
        return Contrast(0.0, 1.0, 1)
    return contrast((1.0, -1.0), (winner, loser))
