"""`tunegate warm`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option
from tunegate.cli.shared_options import BudgetOptions, CacheAddress, Options


class WarmOptions(Options, frozen=True, kw_only=True):
    """Options of `warm`."""

    budget: BudgetOptions = BudgetOptions()
    cache: CacheAddress = CacheAddress()
    models: Annotated[
        tuple[str, ...],
        Option(
            "tune only the configured models that match; may be given for each",
            "GLOB",
            flags=("--model",),
            is_repeated=True,
        ),
    ] = ()
    again: Annotated[
        bool,
        Option(
            "tune also models that an earlier run found far behind another runtime, and elect "
            "anew what is remembered"
        ),
    ] = False


COMMAND = Command(
    name="warm",
    summary="tune all configured models for the cache, and finish what is unfinished",
    options=WarmOptions,
    handler="tunegate.commands.warm:run",
    examples=(
        "tunegate warm --minutes 30",
        "tunegate warm --model 'models/encoder*.onnx'",
    ),
)
