"""Declares `tunegate run`."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Option, count, whole
from tunegate.cli.shared_options import (
    BudgetOptions,
    CacheAddress,
    CiJob,
    ComparedRevisions,
    JudgedMetric,
    Margin,
    MeasuringOptions,
    Options,
    PlannedRevisions,
    ShardMeasuringOptions,
)


class RunOptions(Options, frozen=True, kw_only=True):
    """Options of `run`: those of all stages."""

    revisions: ComparedRevisions = ComparedRevisions()
    budget: BudgetOptions = BudgetOptions()
    margin: Margin = Margin()
    cache: CacheAddress = CacheAddress()
    measured: MeasuringOptions = MeasuringOptions()
    job: CiJob = CiJob()


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


class DetectOptions(Options, frozen=True, kw_only=True):
    """Options of `detect`."""

    revisions: ComparedRevisions = ComparedRevisions()
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


PLAN = Command(
    name="plan",
    summary="look up the cache and share out the budget",
    options=PlanOptions,
    handler="tunegate.cli.handlers.steps:plan",
    examples=("tunegate plan --base main --shards 4 --minutes 10",),
)


# Declares `tunegate tune`.


class TuneOptions(Options, frozen=True, kw_only=True):
    """Options of `tune`: the shard. The plan has settled the rest."""

    revisions: PlannedRevisions = PlannedRevisions()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()
    shard: Annotated[int, Option("which shard of plan.json", "N", whole)] = 0


TUNE = Command(
    name="tune",
    summary="tune one shard of the plan",
    options=TuneOptions,
    handler="tunegate.cli.handlers.steps:tune",
    examples=("tunegate tune --shard 3",),
)


# Declares `tunegate gate`.


class GateOptions(Options, frozen=True, kw_only=True):
    """Options of `gate`."""

    revisions: PlannedRevisions = PlannedRevisions()
    margin: Margin = Margin()
    measured: MeasuringOptions = MeasuringOptions()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()


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


class MeasureOptions(Options, frozen=True, kw_only=True):
    """Options of `measure`: the shard, and how its models are measured. All shards and the verdict
    use one margin."""

    revisions: PlannedRevisions = PlannedRevisions()
    margin: Margin = Margin()
    measured: ShardMeasuringOptions = ShardMeasuringOptions()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()
    shard: Annotated[int, Option("which measuring shard of plan.json", "N", whole)] = 0


MEASURE = Command(
    name="measure",
    summary="build and measure one shard of the gate",
    options=MeasureOptions,
    handler="tunegate.cli.handlers.gate:measure",
    examples=("tunegate measure --shard 3",),
)


# Declares `tunegate verdict`.


class VerdictOptions(Options, frozen=True, kw_only=True):
    """Options of `verdict`."""

    revisions: PlannedRevisions = PlannedRevisions()
    margin: Margin = Margin()
    metric: JudgedMetric = JudgedMetric()
    cache: CacheAddress = CacheAddress()
    job: CiJob = CiJob()


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
