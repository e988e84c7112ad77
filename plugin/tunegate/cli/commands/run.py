"""`tunegate run`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import (
    Budget,
    CacheAddress,
    CiJob,
    ComparedRevisions,
    Margin,
    Measured,
    Options,
)


class RunOptions(Options, frozen=True, kw_only=True):
    """What one process needs for every stage."""

    revisions: ComparedRevisions = ComparedRevisions()
    budget: Budget = Budget()
    margin: Margin = Margin()
    cache: CacheAddress = CacheAddress()
    measured: Measured = Measured()
    job: CiJob = CiJob()


COMMAND = Command(
    name="run",
    summary="detect, plan, tune and gate in one process",
    options=RunOptions,
    handler="tunegate.commands.run:run",
    examples=(
        "tunegate run --base main --head HEAD",
        "tunegate run --since-release --minutes 10 --usd 0.25",
    ),
    judges=True,
)
