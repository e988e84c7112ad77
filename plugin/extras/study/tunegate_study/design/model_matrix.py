"""Settings as rows of numbers, for designs and fits: effect coding, in which an axis' columns sum
to zero over its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from tunegate_study.studies import Axis

Pair = tuple[str, str]


def pairs_of(axes: Sequence[Axis]) -> list[Pair]:
    """Returns the pairs of axes that vary."""
    return list(combinations([axis.name for axis in varied_axes(axes)], 2))


def varied_axes(axes: Sequence[Axis]) -> list[Axis]:
    return [axis for axis in axes if len(axis.levels) > 1]


class ModelMatrix:
    """An intercept, the main effects of all axes, and the interactions of these pairs."""

    def __init__(self, axes: Sequence[Axis], pairs: Sequence[Pair] = ()) -> None:
        self._axes = {axis.name: axis for axis in varied_axes(axes)}
        self._pairs = tuple(pairs)

    @property
    def main_columns(self) -> int:
        return 1 + sum(len(axis.levels) - 1 for axis in self._axes.values())

    def rows(self, settings: Sequence[Mapping[str, str]]) -> np.ndarray:
        main = {name: self._code_axis(axis, settings) for name, axis in self._axes.items()}
        crossed = [_cross(main[one], main[other]) for one, other in self._pairs]
        return np.hstack([np.ones((len(settings), 1)), *main.values(), *crossed])

    def _code_axis(self, axis: Axis, settings: Sequence[Mapping[str, str]]) -> np.ndarray:
        last = len(axis.levels) - 1
        codes = np.vstack([np.eye(last), -np.ones((1, last))])
        return np.asarray(codes[[axis.levels.index(each[axis.name]) for each in settings]])


def _cross(first: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.asarray((first[:, :, None] * other[:, None, :]).reshape(len(first), -1))


def rank(rows: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(rows)) if rows.size else 0
