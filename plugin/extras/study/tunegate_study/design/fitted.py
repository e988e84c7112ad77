"""Effects of a fraction: least squares over all of its cells. An estimate is a weighted sum of
cells, or cannot be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tunegate_study.design.measured import MeasuredCell
from tunegate_study.design.model_matrix import ModelMatrix, Pair, pairs_of, rank
from tunegate_study.studies import Axis, CellSetting

_TOLERANCE = 1e-8


def fitted_pairs(axes: Sequence[Axis], cells: Sequence[MeasuredCell]) -> tuple[Pair, ...]:
    """Returns the pairs to fit besides the main effects: all if there are enough cells, else none.
    A hole in the cells affects only the pairs that it hides."""
    pairs = tuple(pairs_of(axes))
    rows = ModelMatrix(axes, pairs).rows([cell.setting for cell in cells])
    return pairs if rank(rows) < len(cells) else ()


def fitted_weights(
    axes: Sequence[Axis],
    cells: Sequence[MeasuredCell],
    levels: Mapping[str, tuple[str, str]],
    pairs: Sequence[Pair],
) -> list[float] | None:
    """Returns the weights for a level of each axis against another: for one axis its main effect,
    for two how far they are from adding up. None if the cells cannot tell."""
    own = tuple(levels)
    terms = list(pairs)
    if len(own) > 1 and own not in terms and own[::-1] not in terms:
        terms.append((own[0], own[1]))
    matrix = ModelMatrix(axes, terms)
    rows = matrix.rows([cell.setting for cell in cells])
    wanted = _contrast_row(matrix, axes, levels)
    inverse = np.linalg.pinv(rows)
    if np.max(np.abs(wanted @ inverse @ rows - wanted)) > _TOLERANCE:
        return None
    return [float(weight) for weight in wanted @ inverse]


def _contrast_row(
    matrix: ModelMatrix, axes: Sequence[Axis], levels: Mapping[str, tuple[str, str]]
) -> np.ndarray:
    """Returns the row of the contrast, averaged over the levels of the other axes, whose columns
    sum to zero."""
    signed: list[tuple[CellSetting, float]] = [({}, 1.0)]
    for axis in axes:
        if axis.name in levels:
            ways = list(zip(levels[axis.name], (1.0, -1.0), strict=True))
        else:
            ways = [(level, 1 / len(axis.levels)) for level in axis.levels]
        signed = [
            ({**setting, axis.name: level}, sign * way)
            for setting, sign in signed
            for level, way in ways
        ]
    signs = np.array([sign for _, sign in signed])
    return np.asarray(signs @ matrix.rows([setting for setting, _ in signed]))
