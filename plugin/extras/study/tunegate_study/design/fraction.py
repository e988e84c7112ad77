"""A fraction of a factorial that tells main effects, and pairs if its cells allow: D-optimal, by
Fedorov's exchange (Theory of Optimal Experiments, 1972).

Pairs are potential terms in the sense of DuMouchel and Jones (Technometrics 36, 1994): each has a
prior, so that a fraction too small for all of them still tells as much as it can.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tunegate_study.design.model_matrix import ModelMatrix, Pair, pairs_of, rank
from tunegate_study.studies import Axis, CellSetting

_STARTS = 4
_EXCHANGES = 400
_MOST_CANDIDATES = 600
"""The number of cells drawn from more: the exchange compares each pair of them."""
_PRIOR = 1.0
"""The precision of a pair's prior: that of one cell."""
_RIDGE = 1e-6


def cells_needed(axes: Sequence[Axis], possible: Sequence[CellSetting]) -> int:
    """Returns the fewest cells that tell all main effects that these settings can tell."""
    return rank(ModelMatrix(axes).rows(possible))


def chosen_cells(
    axes: Sequence[Axis], possible: Sequence[CellSetting], most: int, *, seed: int = 1
) -> tuple[CellSetting, ...]:
    """Returns all settings if `most` allows, else a fraction, in order. It has `most` cells, which
    must be at least `cells_needed`."""
    if len(possible) <= most:
        return tuple(possible)
    random = np.random.default_rng(seed)
    settings = _draw_candidates(axes, possible, random)
    matrix = ModelMatrix(axes, pairs_of(axes))
    rows = matrix.rows(settings)
    prior = np.full(rows.shape[1], _PRIOR)
    prior[: matrix.main_columns] = _RIDGE
    main, wanted = rows[:, : matrix.main_columns], cells_needed(axes, settings)
    found = [_exchange_cells(rows, prior, most, random) for _ in range(_STARTS)]
    best = max(found, key=lambda each: (rank(main[each]) == wanted, _worth(rows[each], prior)))
    return tuple(settings[place] for place in sorted(best))


def untold_pairs(axes: Sequence[Axis], cells: Sequence[CellSetting]) -> tuple[Pair, ...]:
    """Returns the pairs whose whole interaction these cells cannot tell, even if all other pairs
    add up."""
    alone = rank(ModelMatrix(axes).rows(cells))
    return tuple(
        pair
        for pair in pairs_of(axes)
        if rank(ModelMatrix(axes, [pair]).rows(cells)) - alone < _freedom(axes, pair)
    )


def _freedom(axes: Sequence[Axis], pair: Pair) -> int:
    one, other = (next(axis for axis in axes if axis.name == name) for name in pair)
    return (len(one.levels) - 1) * (len(other.levels) - 1)


def _draw_candidates(
    axes: Sequence[Axis], possible: Sequence[CellSetting], random: np.random.Generator
) -> list[CellSetting]:
    """Returns the candidates of the exchange; a drawn subset tells as much as all of them."""
    if len(possible) <= _MOST_CANDIDATES:
        return list(possible)
    wanted = cells_needed(axes, possible)
    while True:
        places = sorted(random.choice(len(possible), _MOST_CANDIDATES, replace=False))
        drawn = [possible[place] for place in places]
        if cells_needed(axes, drawn) == wanted:
            return drawn


def _exchange_cells(
    rows: np.ndarray, prior: np.ndarray, count: int, random: np.random.Generator
) -> list[int]:
    """Returns the rows of a random start after exchanges: the cell that tells least for the one
    that tells most, until no exchange helps."""
    inside = np.zeros(len(rows), dtype=bool)
    inside[random.choice(len(rows), count, replace=False)] = True
    for _ in range(_EXCHANGES):
        out, into = np.flatnonzero(inside), np.flatnonzero(~inside)
        kept = rows[out]
        told = rows @ np.linalg.inv(kept.T @ kept + np.diag(prior))
        own = np.einsum("ij,ij->i", told, rows)
        gain = (
            own[into][None, :]
            - own[out][:, None]
            - own[out][:, None] * own[into][None, :]
            + (told[out] @ rows[into].T) ** 2
        )
        best = np.unravel_index(np.argmax(gain), gain.shape)
        if gain[best] < _RIDGE:
            break
        inside[out[best[0]]], inside[into[best[1]]] = False, True
    return [int(place) for place in np.flatnonzero(inside)]


def _worth(rows: np.ndarray, prior: np.ndarray) -> float:
    return float(np.linalg.slogdet(rows.T @ rows + np.diag(prior))[1])
