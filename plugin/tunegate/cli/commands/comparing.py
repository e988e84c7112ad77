"""Declares `tunegate compare`."""

from pathlib import Path
from typing import Annotated

from tunegate.cli import shared_options
from tunegate.cli.command import Command
from tunegate.cli.option import Argument, Option


class CompareOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of `compare`: the two sides, and how they are measured and judged."""

    budget: shared_options.BudgetOptions = shared_options.BudgetOptions()
    margin: shared_options.Margin = shared_options.Margin()
    cache: shared_options.CacheAddress = shared_options.CacheAddress()
    measured: shared_options.MeasuringOptions = shared_options.MeasuringOptions()
    base: Annotated[
        str,
        Argument(
            "what to compare with: an ONNX file (RUNTIME:FILE for one runtime), "
            "a directory with an artifact.json, or with --commands a command line",
            "BASE",
        ),
    ]
    head: Annotated[
        str,
        Argument(
            "what to check: the same kinds of things; the very model of BASE passes at once", "HEAD"
        ),
    ] = ""
    environments: Annotated[
        tuple[Path, ...],
        Option(
            "run BASE, one model, or each artifact in the virtual environment DIR; "
            "given twice, the first is the base",
            "DIR",
            Path,
            flags=("--env",),
            is_repeated=True,
        ),
    ] = ()
    are_commands: Annotated[
        bool,
        Option(
            "run BASE and HEAD; each prints latencies in milliseconds, one in a line",
            flags=("--commands",),
        ),
    ] = False
    shapes: shared_options.InputShapes = ()


COMPARE = Command(
    name="compare",
    summary="gate one model, artifact or command against another",
    options=CompareOptions,
    handler="tunegate.cli.handlers.compare:run",
    examples=(
        "tunegate compare old.onnx new.onnx --margin-percent 3",
        "tunegate compare production/ new.onnx",
        "tunegate compare tvm:m.onnx onnxruntime:m.onnx --shape input=1,3,224,224",
        "tunegate compare --env old/ --env new/ model.onnx",
        'tunegate compare --commands "./old --bench" "./new --bench"',
    ),
    judges=True,
    replaces_verdict=True,
)


# Declares `tunegate confirm`.


class ConfirmOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of `confirm`: the verdicts of two machines."""

    verdicts: Annotated[tuple[str, str], Argument("two verdict.json files", "VERDICT", count=2)]


CONFIRM = Command(
    name="confirm",
    summary="fail only what also fails on a second machine",
    options=ConfirmOptions,
    handler="tunegate.cli.handlers.gate:confirm",
    examples=("tunegate confirm first/verdict.json second/verdict.json --out confirmed",),
    judges=True,
)
