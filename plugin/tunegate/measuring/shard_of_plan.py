"""The part of a plan that belongs to one measuring shard. Pure."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.plans import MeasuringShard, TuningPlan


def of_shard(planned: TuningPlan, shard: MeasuringShard) -> TuningPlan:
    """The plan with the models of this shard alone, on its target."""
    models = tuple(
        msgspec.structs.replace(change, targets=(shard.target,))
        for change in planned.changes.models
        if change.path in shard.models
    )
    changes = msgspec.structs.replace(planned.changes, models=models)
    return msgspec.structs.replace(planned, changes=changes)


def compared_elsewhere(planned: TuningPlan, shard: MeasuringShard) -> int:
    """The most cells that the other shards compare: all are judged together."""
    with_base = {change.path for change in planned.changes.models if change.base is not None}
    return sum(
        model in with_base
        for other in planned.measuring
        if other.index != shard.index
        for model in other.models
    )
