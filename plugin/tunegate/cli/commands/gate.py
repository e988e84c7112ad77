"""`tunegate gate`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import (
    CacheAddress,
    CiJob,
    Margin,
    MeasuringOptions,
    Options,
    PlannedRevisions,
)


class GateOptions(Options, frozen=True, kw_only=True):
    """Options of `gate`."""

    revisions: PlannedRevisions = PlannedRevisions()
    margin: Margin = Margin()
    measured: MeasuringOptions = MeasuringOptions()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()


COMMAND = Command(
    name="gate",
    summary="build both sides, measure them and decide",
    options=GateOptions,
    handler="tunegate.commands.gate:run",
    examples=("tunegate gate --margin-percent 3",),
    judges=True,
    replaces_verdict=True,
)
