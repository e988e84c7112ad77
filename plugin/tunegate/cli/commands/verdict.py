"""`tunegate verdict`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import (
    CacheAddress,
    CiJob,
    JudgedMetric,
    Margin,
    Options,
    PlannedRevisions,
)


class VerdictOptions(Options, frozen=True, kw_only=True):
    """Options of `verdict`."""

    revisions: PlannedRevisions = PlannedRevisions()
    margin: Margin = Margin()
    metric: JudgedMetric = JudgedMetric()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()


COMMAND = Command(
    name="verdict",
    summary="merge what the shards of the gate measured, and decide",
    options=VerdictOptions,
    handler="tunegate.commands.sharded.verdict:run",
    examples=("tunegate verdict --margin-percent 3",),
    judges=True,
    replaces_verdict=True,
)
