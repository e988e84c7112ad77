"""`tunegate plan`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import (
    BudgetOptions,
    CacheAddress,
    CiJob,
    ComparedRevisions,
    Margin,
    Options,
)
from tunegate.cli.values import count


class PlanOptions(Options, frozen=True, kw_only=True):
    """Options of `plan`: the decisions for the later jobs."""

    revisions: ComparedRevisions = ComparedRevisions()
    budget: BudgetOptions = BudgetOptions()
    margin: Margin = Margin()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()
    shards: Annotated[
        int | None, Option("how many runners tune; default: one for each target", "N", count)
    ] = None
    measure_shards: Annotated[
        int | None,
        Option("how many runners measure; default: one for each target", "N", count),
    ] = None


COMMAND = Command(
    name="plan",
    summary="look up the cache and share out the budget",
    options=PlanOptions,
    handler="tunegate.commands.plan:run",
    examples=("tunegate plan --base main --shards 4 --minutes 10",),
)
