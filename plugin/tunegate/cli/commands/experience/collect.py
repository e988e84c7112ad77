"""`tunegate experience collect`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import BudgetOptions, CacheAddress, Options
from tunegate.cli.values import count, seed


class CollectOptions(Options, frozen=True, kw_only=True):
    """The models that layers are taken from, and how much is measured."""

    budget: BudgetOptions = BudgetOptions()
    cache: CacheAddress = CacheAddress()
    models: Annotated[
        tuple[str, ...],
        Option(
            "take layers only of the configured models that match; may be given for each",
            "GLOB",
            flags=("--model",),
            is_repeated=True,
        ),
    ] = ()
    tasks: Annotated[
        int | None, Option("cap on measured tasks; default: what the budget pays for", "N", count)
    ] = None
    trials_per_task: Annotated[int, Option("candidates of each task", "N", count)] = 100
    draw_seed: Annotated[
        int,
        Option(
            "which layers are drawn, in which order, and which candidates; the same one goes on "
            "where an earlier call ended",
            "N",
            seed,
            flags=("--seed",),
        ),
    ] = 1


COMMAND = Command(
    name="experience collect",
    summary="measure layers of the configured models, for cost models to learn from",
    options=CollectOptions,
    handler="tunegate.commands.experience.collect:run",
    examples=(
        "tunegate experience collect --minutes 30",
        "tunegate experience collect --model 'models/*.onnx' --tasks 8",
    ),
)
