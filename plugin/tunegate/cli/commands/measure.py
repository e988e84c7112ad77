"""`tunegate measure`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import (
    CacheAddress,
    CiJob,
    Margin,
    Options,
    PlannedRevisions,
    ShardMeasuringOptions,
)
from tunegate.cli.values import whole


class MeasureOptions(Options, frozen=True, kw_only=True):
    """The shard, and how its models are measured. All shards and the verdict take one margin."""

    revisions: PlannedRevisions = PlannedRevisions()
    margin: Margin = Margin()
    measured: ShardMeasuringOptions = ShardMeasuringOptions()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()
    shard: Annotated[int, Option("which measuring shard of plan.json", "N", whole)] = 0


COMMAND = Command(
    name="measure",
    summary="build and measure one shard of the gate",
    options=MeasureOptions,
    handler="tunegate.commands.sharded.measure:run",
    examples=("tunegate measure --shard 3",),
)
