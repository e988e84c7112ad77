"""Effects of a full factorial with holes: means over settings in which everything compared was
measured, without an assumption about the others.

A cell may stand for several settings: one that tuning does not change is compared with each level
of tuning. It is never compared with itself, and no cells are compared twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tunegate_study.design.measured import MeasuredCell, as_key, without

Weights = list[float]


def main_weights(
    cells: Sequence[MeasuredCell], axis: str, level: str, against: str
) -> tuple[Weights, int]:
    """Returns the weights of `level` against another one, and the number of settings that have
    both."""
    return _weights(cells, {axis: (level, against)})


def pair_weights(
    cells: Sequence[MeasuredCell], levels: Mapping[str, tuple[str, str]]
) -> tuple[Weights, int]:
    """Returns the weights of how far two axes are from adding up, for a level of each against
    another, and the number of settings that have all four."""
    return _weights(cells, levels)


def _weights(
    cells: Sequence[MeasuredCell], levels: Mapping[str, tuple[str, str]]
) -> tuple[Weights, int]:
    groups: dict[tuple[tuple[str, str], ...], dict[int, int]] = {}
    places = {cell.origin: place for place, cell in reversed([*enumerate(cells)])}
    for cell in cells:
        signs = [_sign(cell.setting[axis], *both) for axis, both in levels.items()]
        if all(signs):
            sign = -1 if signs.count(-1) % 2 else 1
            around = as_key(without(cell.setting, levels))
            groups.setdefault(around, {})[places[cell.origin]] = sign
    unlike = {frozenset(group.items()): group for group in groups.values()}
    whole = [group for group in unlike.values() if len(group) == 2 ** len(levels)]
    weights = [0.0] * len(cells)
    for group in whole:
        for place, sign in group.items():
            weights[place] += sign / len(whole)
    return weights, len(whole)


def _sign(level: str, plus: str, against: str) -> int:
    return 1 if level == plus else -1 if level == against else 0
