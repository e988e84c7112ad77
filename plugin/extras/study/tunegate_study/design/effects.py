"""Main effects, and the pairs of axes that do not add up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tunegate_study.design.contrasts import Contrast, contrast
from tunegate_study.design.fitted import fitted_pairs, fitted_weights
from tunegate_study.design.matched import main_weights, pair_weights
from tunegate_study.design.measured import MODEL, MeasuredCell
from tunegate_study.design.model_matrix import Pair, pairs_of, varied_axes
from tunegate_study.studies import Axis, MainEffect, PairEffect


class Estimates:
    """Estimates levels against others from the cells; None if they cannot tell. A fraction is
    fitted, the cells of a full factorial are matched."""

    def __init__(
        self, axes: Sequence[Axis], cells: Sequence[MeasuredCell], *, is_full: bool
    ) -> None:
        self._axes, self._cells, self._is_full = varied_axes(axes), cells, is_full
        self._samples = [cell.paired for cell in cells]
        self._pairs: tuple[Pair, ...] = () if is_full else fitted_pairs(self._axes, cells)

    def of(self, levels: Mapping[str, tuple[str, str]]) -> tuple[Contrast, int] | None:
        """Returns the contrast, and the number of settings that it averages; 0 for a fit."""
        if not self._is_full:
            fitted = self._fitted_weights(levels)
            return None if fitted is None else (contrast(fitted, self._samples), 0)
        if len(levels) == 1:
            ((axis, both),) = levels.items()
            weights, settings = main_weights(self._cells, axis, *both)
        else:
            weights, settings = pair_weights(self._cells, levels)
        return (contrast(weights, self._samples), settings) if settings else None

    def _fitted_weights(self, levels: Mapping[str, tuple[str, str]]) -> list[float] | None:
        """Returns the weights with all pairs fitted, or, if that cannot be told, under the
        assumption that axes add up."""
        fitted = fitted_weights(self._axes, self._cells, levels, self._pairs)
        if fitted is not None or not self._pairs:
            return fitted
        return fitted_weights(self._axes, self._cells, levels, ())


def main_effects(axes: Sequence[Axis], estimates: Estimates) -> tuple[MainEffect, ...]:
    """Returns each level against the first of its axis, except for models, which compute different
    things."""
    told = [
        (axis.name, level, *found)
        for axis in varied_axes(axes)
        if axis.name != MODEL
        for level in axis.levels[1:]
        if (found := estimates.of({axis.name: (level, axis.levels[0])})) is not None
    ]
    first = {axis.name: axis.levels[0] for axis in axes}
    return tuple(
        MainEffect(
            axis=axis,
            level=level,
            against=first[axis],
            percent=found.percent(len(told)),
            p_value=min(1.0, len(told) * found.p_value),
            is_clear=_is_clear(found, len(told)),
            settings=settings,
        )
        for axis, level, found, settings in told
    )


class _PairContrast(msgspec.Struct, frozen=True):
    levels: Mapping[str, tuple[str, str]]
    contrast: Contrast
    settings: int


def pair_effects(axes: Sequence[Axis], estimates: Estimates) -> tuple[PairEffect, ...]:
    """Returns each level of one axis with each of another, against the first of both, the clearest
    first. A study without two varying axes has none."""
    told = list(_pair_contrasts(axes, estimates))
    effects = [_pair_effect(each, len(told)) for each in told]
    return tuple(sorted(effects, key=lambda each: (each.p_value, -abs(each.percent.center))))


def _pair_contrasts(axes: Sequence[Axis], estimates: Estimates) -> Iterator[_PairContrast]:
    by_name = {axis.name: axis for axis in axes}
    for one, other in pairs_of(axes):
        for first in by_name[one].levels[1:]:
            for second in by_name[other].levels[1:]:
                levels = {
                    one: (first, by_name[one].levels[0]),
                    other: (second, by_name[other].levels[0]),
                }
                found = estimates.of(levels)
                if found is not None:
                    yield _PairContrast(levels, *found)


def _pair_effect(pair: _PairContrast, family: int) -> PairEffect:
    (one, first), (other, second) = pair.levels.items()
    return PairEffect(
        axes=(one, other),
        levels=(first[0], second[0]),
        against=(first[1], second[1]),
        percent=pair.contrast.percent(family),
        p_value=min(1.0, family * pair.contrast.p_value),
        is_clear=_is_clear(pair.contrast, family),
        settings=pair.settings,
    )


def _is_clear(contrast: Contrast, family: int) -> bool:
    """Returns whether the whole interval, which is shown beside it, is on one side of 0."""
    percent = contrast.percent(family)
    return not percent.low <= 0 <= percent.high
