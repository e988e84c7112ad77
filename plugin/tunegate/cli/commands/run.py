"""`tunegate run`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import (
    BudgetOptions,
    CacheAddress,
    CiJob,
    ComparedRevisions,
    Margin,
    MeasuringOptions,
    Options,
)


class RunOptions(Options, frozen=True, kw_only=True):
    """Options of `run`: those of all stages."""

    revisions: ComparedRevisions = ComparedRevisions()
    budget: BudgetOptions = BudgetOptions()
    margin: Margin = Margin()
    cache: CacheAddress = CacheAddress()
    measured: MeasuringOptions = MeasuringOptions()
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
    replaces_verdict=True,
)
