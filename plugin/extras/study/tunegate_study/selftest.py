"""`tunegate selftest`: what the gate can decide on this machine, and whether it is right. It gates
one model against itself, then with waits of known length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import onnx

from tunegate.artifacts.measurements import Launch
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.config import Config, GateConfig, ModelConfig, TargetConfig
from tunegate.decide.decision import MIN_SPREAD, PASS_ERROR, Bounds, bounds
from tunegate.decide.distributions import t_quantile
from tunegate.decide.guards import undisturbed_launches
from tunegate.decide.sequential import affordable_analyses
from tunegate.errors import PASS, UNFIT, ModelError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.paired_launches import LaunchProgress, launch_until_decided
from tunegate.models.light_models import seeded_light
from tunegate.ports import Bench, Benchmarker, BuildJob, ModelJob, Shapes
from tunegate.review import config_file
from tunegate.runtimes.builder import reference_builder
from tunegate.settings import Settings
from tunegate.system.output.directory import opened_output
from tunegate.tools import RunContext
from tunegate.wiring import opened_gate_tools
from tunegate.wording import plural
from tunegate_study.command import SelftestOptions

INJECTED_PERCENT = (0.0, 1.0, 3.0, 5.0, 10.0)
MARGINS_PERCENT = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0)
_SHARE_OF_AA = 0.4
_FEWEST, _MOST = 8, 60
_NO_BOUNDS = Bounds(low=-math.inf, center=0.0, high=math.inf, spread=math.inf)

TrialOutcome = Literal["fail", "pass", "inconclusive", "invalid-env"]


class Injected(msgspec.Struct, frozen=True, kw_only=True):
    """One gate with a known slowdown."""

    percent: float
    outcome: TrialOutcome
    low: float
    center: float
    high: float
    launches: int
    seconds: float


class Qualification(msgspec.Struct, frozen=True, kw_only=True):
    """The abilities of a machine. `spread_percent` is the spread of launches of one model against
    itself, `margin_percent` the smallest usual margin decidable in `gate_seconds`."""

    aa_launches: int
    spread_percent: float
    resolves_percent: float
    margin_percent: float | None
    gate_seconds: float
    launch_seconds: float
    injected: tuple[Injected, ...]

    @property
    def wrong(self) -> tuple[Injected, ...]:
        """The wrong gates: a fail without a slowdown over the margin, or a pass over it."""
        margin = self.margin_percent or 0.0
        return tuple(
            each
            for each in self.injected
            if (each.outcome == "fail" and each.percent <= margin)
            or (each.outcome == "pass" and each.percent >= margin)
        )


def qualify(
    artifact: Path,
    *,
    benchmarker: Benchmarker,
    gate: GateConfig,
    context: RunContext,
    seconds: float,
) -> Qualification:
    """Runs the gate for about `seconds`. Raises MeasurementError."""
    clock, progress = context.clock, context.progress
    started = clock.monotonic()
    # What the machine can tell from nothing, by the spread of equal builds.
    progress.step("selftest: the same against itself")
    effects, launch_seconds = _against_itself(
        benchmarker.pair(artifact, artifact), gate, context, _SHARE_OF_AA * seconds
    )
    resolves = smallest_margin_percent(
        effects, launch_seconds=launch_seconds, budget_seconds=gate.seconds
    )
    # Then whether a gate with the next margin finds slowdowns of a known size.
    margin = next((each for each in MARGINS_PERCENT if each >= resolves), None)
    left = seconds - (clock.monotonic() - started)
    each_gate = msgspec.structs.replace(
        gate,
        extend=False,
        margin_percent=margin or MARGINS_PERCENT[-1],
        seconds=max(launch_seconds, left / len(INJECTED_PERCENT)),
    )
    injected = []
    for percent in INJECTED_PERCENT:
        progress.step(f"selftest: {percent:g}% slower")
        head = benchmarker.pair(artifact, artifact, slowdown_percent=percent)
        control = benchmarker.pair(artifact, artifact)
        injected.append(_gate_injected(head, control, percent, each_gate, context))
    return Qualification(
        aa_launches=len(effects),
        spread_percent=100 * bounds(effects, analyses=1, cells=1).spread,
        resolves_percent=resolves,
        margin_percent=margin,
        gate_seconds=gate.seconds,
        launch_seconds=launch_seconds,
        injected=tuple(injected),
    )


def _against_itself(
    bench: Bench, gate: GateConfig, context: RunContext, seconds: float
) -> tuple[list[float], float]:
    clock = context.clock
    started = clock.monotonic()
    launches: list[Launch] = []
    while len(launches) < _FEWEST or (
        len(launches) < _MOST and clock.monotonic() - started < seconds
    ):
        launches.append(bench.launch(gate.pairs))
        context.progress.update(f"{plural(len(launches), 'launch', 'launches')}")
    spent = clock.monotonic() - started
    kept = undisturbed_launches(launches, math.log1p(gate.margin_percent / 100))
    return [launch.effect for launch in kept], spent / len(launches)


def _gate_injected(
    bench: Bench, control: Bench, percent: float, gate: GateConfig, context: RunContext
) -> Injected:
    started = context.clock.monotonic()

    def say(progress: LaunchProgress) -> None:
        context.progress.update(
            f"{plural(progress.launches, 'launch', 'launches')}, {progress.center:+.1f}%"
        )

    launched = launch_until_decided(bench, control, gate, 1, say)
    assessed = launched.assess(gate)
    outcome: TrialOutcome = "inconclusive"
    if launched.stopped == "disturbed" or assessed is None:
        outcome = "invalid-env"
    elif assessed.decision != "undecided":
        outcome = assessed.decision
    interval = assessed.bounds if assessed is not None else _NO_BOUNDS
    return Injected(
        percent=percent,
        outcome=outcome,
        low=100 * math.expm1(interval.low),
        center=100 * math.expm1(interval.center),
        high=100 * math.expm1(interval.high),
        launches=len(launched.launches),
        seconds=context.clock.monotonic() - started,
    )


# The smallest change that a machine can tell from none, by launches of one model against itself.

_SURELY = 1.645
"""A normal quantile: 19 of 20 gates without a change pass within the budget."""


def smallest_margin_percent(
    effects: Sequence[float], *, launch_seconds: float, budget_seconds: float
) -> float:
    """Returns the smallest margin in percent under which an unchanged model would surely pass."""
    analyses = affordable_analyses(budget_seconds, launch_seconds)
    spread = max(float(np.std(effects, ddof=1)), MIN_SPREAD)
    quantile = t_quantile(analyses[-1] - 1, 1 - PASS_ERROR / len(analyses))
    return 100 * math.expm1((quantile + _SURELY) * spread / math.sqrt(analyses[-1]))


# The command.

_MODEL = "squeezenet"
_COLUMNS = ("made slower by", "verdict", "measured", "launches", "seconds")


def run(options: SelftestOptions) -> int:
    """Returns 0 if the configured margin can be decided here and no gate was wrong, else 4. Needs
    no compiler: the model runs under ONNX Runtime. Raises ModelError, MeasurementError."""
    settings = options.settings
    config = _config(settings)
    with (
        opened_output(settings.out, "selftest") as out,
        opened_gate_tools(settings, config, FreshProcesses, out) as tools,
    ):
        artifact = _artifact(
            out.workdir,
            options.model,
            dict(options.shapes),
            config.targets[0],
            tools.context.seed,
        )
        found = qualify(
            artifact,
            benchmarker=tools.benchmarker,
            gate=config.gate,
            context=tools.context,
            seconds=60 * options.minutes,
        )
    if settings.as_json:
        write_json(found)
    else:
        _show(found, config.gate.margin_percent)
    return PASS if _is_fit(found, config.gate.margin_percent) else UNFIT


def _config(settings: Settings) -> Config:
    path = settings.config or settings.repository / config_file.CONFIG_FILE
    if settings.config is None and not path.exists():
        return Config(models=(ModelConfig(path="*.onnx"),), targets=(TargetConfig(name="cpu"),))
    return config_file.load_config(path)


def _artifact(
    workdir: Path, model: Path | None, shapes: Shapes, target: TargetConfig, seed: int
) -> Path:
    file = model
    if file is None:
        file = workdir / f"{_MODEL}.onnx"
        onnx.save(seeded_light(_MODEL, seed=0), file)
    job = BuildJob(
        model=ModelJob(file=file, path=file.name, shapes=shapes, target=target),
        records={},
        sources={},
        directory=workdir / "artifact",
    )
    (build,) = reference_builder(workdir / "reference", seed).build([job])
    if build.error is not None:
        raise ModelError(build.error)
    return workdir / "artifact"


def _show(qualification: Qualification, wanted_percent: float) -> None:
    margin = qualification.margin_percent
    show_table(
        f"Gates with a margin of {margin:g}%" if margin else "Gates with a margin of 20%",
        _COLUMNS,
        [
            (
                f"{each.percent:g}%",
                each.outcome + (" (WRONG)" if each in qualification.wrong else ""),
                f"{each.center:+.1f}% ({each.low:+.1f} to {each.high:+.1f}%)",
                each.launches,
                f"{each.seconds:.0f}",
            )
            for each in qualification.injected
        ],
    )
    seen = (
        f"{qualification.aa_launches} launches of one model against itself: spread "
        f"{qualification.spread_percent:.2f}%, {qualification.launch_seconds:.1f} s each."
    )
    show_lines([seen, advice(qualification, wanted_percent)])


def advice(qualification: Qualification, wanted_percent: float) -> str:
    """Returns one sentence on what to set, or what to do about the machine."""
    budget = f"{qualification.gate_seconds:.0f} s"
    if qualification.wrong:
        return (
            "A gate said what was not true: do not gate on this machine, something on it changes "
            "speed while it measures."
        )
    if qualification.margin_percent is None:
        return f"This machine cannot decide even 20% in {budget}: use a quieter one."
    margin = f"{qualification.margin_percent:g}%"
    if qualification.margin_percent > wanted_percent:
        return (
            f"This machine decides {margin} in {budget}, not {wanted_percent:g}%: set "
            f"gate.margin-percent: {qualification.margin_percent:g}, raise "
            "gate.seconds, or use a quieter one."
        )
    if qualification.margin_percent < wanted_percent:
        return (
            f"This machine decides {margin} in {budget}: gate.margin-percent could be "
            f"{qualification.margin_percent:g} instead of {wanted_percent:g}."
        )
    return f"This machine decides its margin of {margin} in {budget}."


def _is_fit(qualification: Qualification, wanted_percent: float) -> bool:
    margin = qualification.margin_percent
    return margin is not None and margin <= wanted_percent and not qualification.wrong
