"""Divides the cells of a study among runners. All cells of a model on a target stay together, as
they are compared."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tunegate.plan.allocation import balance_loads
from tunegate_study.design.cost import estimated_seconds
from tunegate_study.design.measured import MODEL, TARGET
from tunegate_study.studies import CellSetting


def cells_of_shard(
    cells: Sequence[CellSetting], shard: int, shards: int, compilers: Collection[str], rounds: int
) -> tuple[CellSetting, ...]:
    """Returns the cells of one shard, counted from 1. All shards take about as long; one may be
    empty."""
    groups: dict[tuple[str, str], list[CellSetting]] = {}
    for cell in cells:
        groups.setdefault((cell[MODEL], cell[TARGET]), []).append(cell)
    loads = [estimated_seconds(group, compilers, rounds) for group in groups.values()]
    mine = balance_loads(loads, shards)[shard - 1]
    return tuple(cell for place in mine for cell in [*groups.values()][place])
