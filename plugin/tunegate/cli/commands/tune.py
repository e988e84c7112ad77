"""`tunegate tune`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import CacheAddress, CiJob, Options, PlannedRevisions
from tunegate.cli.values import whole


class TuneOptions(Options, frozen=True, kw_only=True):
    """The shard. The plan has settled the rest."""

    revisions: PlannedRevisions = PlannedRevisions()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()
    shard: Annotated[int, Option("which shard of plan.json", "N", whole)] = 0


COMMAND = Command(
    name="tune",
    summary="tune one shard of the plan",
    options=TuneOptions,
    handler="tunegate.commands.tune:run",
    examples=("tunegate tune --shard 3",),
)
