"""Declares the commands that gate: `run`, its steps one by one, `compare` and `confirm`."""

from pathlib import Path
from typing import Annotated

from tunegate.cli import shared_options
from tunegate.cli.command import Command
from tunegate.cli.option import Argument, Option, count, whole_number


class RunOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of `run`: those of all stages."""

    revisions: shared_options.ComparedRevisions = shared_options.ComparedRevisions()
    budget: shared_options.BudgetOptions = shared_options.BudgetOptions()
    margin: shared_options.Margin = shared_options.Margin()
    cache: shared_options.CacheAddress = shared_options.CacheAddress()
    measuring: shared_options.MeasuringOptions = shared_options.MeasuringOptions()
    job: shared_options.CiJob = shared_options.CiJob()


RUN = Command(
    name="run",
    summary="detect, plan, tune and gate in one process",
    options=RunOptions,
    handler="tunegate.cli.handlers.run:run",
    examples=(
        "tunegate run --base main --head HEAD",
        "tunegate run --since-release --minutes 10 --usd 0.25",
    ),
    judges=True,
    replaces_verdict=True,
)


# Declares `tunegate detect`.


class DetectOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of `detect`."""

    revisions: shared_options.ComparedRevisions = shared_options.ComparedRevisions()
    pushed: Annotated[
        bool,
        Option("compare what a push brings, as pre-commit names it, and write no file"),
    ] = False


DETECT = Command(
    name="detect",
    summary="say which models a change touches",
    options=DetectOptions,
    handler="tunegate.cli.handlers.steps:detect",
    examples=(
        "tunegate detect",
        "tunegate detect --base main --json",
    ),
)


# Declares `tunegate plan`.


class PlanOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of `plan`: the decisions for the later jobs."""

    revisions: shared_options.ComparedRevisions = shared_options.ComparedRevisions()
    budget: shared_options.BudgetOptions = shared_options.BudgetOptions()
    margin: shared_options.Margin = shared_options.Margin()
    cache: shared_options.CacheAddress = shared_options.CacheAddress()
    job: shared_options.CiJob = shared_options.CiJob()
    shards: Annotated[
        int | None, Option("how many runners tune; default: one for each target", "N", count)
    ] = None
    measure_shards: Annotated[
        int | None,
        Option("how many runners measure; default: one for each target", "N", count),
    ] = None


PLAN = Command(
    name="plan",
    summary="look up the cache and divide the budget",
    options=PlanOptions,
    handler="tunegate.cli.handlers.steps:plan",
    examples=("tunegate plan --base main --shards 4 --minutes 10",),
)


class LaterOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of the jobs after `plan`, which has settled the rest."""

    revisions: shared_options.PlannedRevisions = shared_options.PlannedRevisions()
    cache: shared_options.CacheAddress = shared_options.CacheAddress()
    job: shared_options.CiJob = shared_options.CiJob()


# Declares `tunegate tune`.


class TuneOptions(LaterOptions, frozen=True, kw_only=True):
    """Options of `tune`: the shard."""

    shard: Annotated[int, Option("which shard of plan.json", "N", whole_number)] = 0


TUNE = Command(
    name="tune",
    summary="tune one shard of the plan",
    options=TuneOptions,
    handler="tunegate.cli.handlers.steps:tune",
    examples=("tunegate tune --shard 3",),
)


# Declares `tunegate gate`.


class GateOptions(LaterOptions, frozen=True, kw_only=True):
    """Options of `gate`."""

    margin: shared_options.Margin = shared_options.Margin()
    measuring: shared_options.MeasuringOptions = shared_options.MeasuringOptions()


GATE = Command(
    name="gate",
    summary="build both sides, measure them and decide",
    options=GateOptions,
    handler="tunegate.cli.handlers.gate:gate",
    examples=("tunegate gate --margin-percent 3",),
    judges=True,
    replaces_verdict=True,
)


# Declares `tunegate measure`.


class MeasureOptions(LaterOptions, frozen=True, kw_only=True):
    """Options of `measure`: the shard, and how its models are measured. All shards and the verdict
    use one margin."""

    margin: shared_options.Margin = shared_options.Margin()
    measuring: shared_options.ShardMeasuringOptions = shared_options.ShardMeasuringOptions()
    shard: Annotated[int, Option("which measuring shard of plan.json", "N", whole_number)] = 0


MEASURE = Command(
    name="measure",
    summary="build and measure one shard of the gate",
    options=MeasureOptions,
    handler="tunegate.cli.handlers.gate:measure",
    examples=("tunegate measure --shard 3",),
)


# Declares `tunegate verdict`.


class VerdictOptions(LaterOptions, frozen=True, kw_only=True):
    """Options of `verdict`."""

    margin: shared_options.Margin = shared_options.Margin()
    metric: shared_options.JudgedMetric = shared_options.JudgedMetric()


VERDICT = Command(
    name="verdict",
    summary="merge what the shards of the gate measured, and decide",
    options=VerdictOptions,
    handler="tunegate.cli.handlers.gate:judge",
    examples=("tunegate verdict --margin-percent 3",),
    judges=True,
    replaces_verdict=True,
)


# Declares `tunegate warm`.


class WarmOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of `warm`."""

    budget: shared_options.BudgetOptions = shared_options.BudgetOptions()
    cache: shared_options.CacheAddress = shared_options.CacheAddress()
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


WARM = Command(
    name="warm",
    summary="tune all configured models for the cache, and finish what is unfinished",
    options=WarmOptions,
    handler="tunegate.cli.handlers.warm:run",
    examples=(
        "tunegate warm --minutes 30",
        "tunegate warm --model 'models/encoder*.onnx'",
    ),
)


# Declares `tunegate compare`.


class CompareOptions(shared_options.Options, frozen=True, kw_only=True):
    """Options of `compare`: the two sides, and how they are measured and judged."""

    budget: shared_options.BudgetOptions = shared_options.BudgetOptions()
    margin: shared_options.Margin = shared_options.Margin()
    cache: shared_options.CacheAddress = shared_options.CacheAddress()
    measuring: shared_options.MeasuringOptions = shared_options.MeasuringOptions()
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
