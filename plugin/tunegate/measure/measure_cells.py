"""Measures every cell on this machine: base against head, in launches of fresh processes."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.measurements import CellMeasurement, DifferingLayers, MeasurementRun, Metric
from tunegate.decide.decision import EXPLAINED
from tunegate.decide.distributions import inferences_needed
from tunegate.errors import MeasurementError
from tunegate.measure.paired_launches import LaunchProgress, launch_layers, launch_until_decided
from tunegate.ports import Benchmarker, Progress, Scorer
from tunegate.review.gate_rules import GateRules, waived_gate
from tunegate.tools import RunContext
from tunegate.wording import plural

_TELLING_PERCENT = 50
"""The intervals of the first launches are wider than this, and would look like a fault."""


class Reference(msgspec.Struct, frozen=True):
    """The head's model, for the column of the reference runtime."""

    runtime: RuntimeName
    title: str
    model: ShapedModel
    threads: int


def measure(
    builds: Sequence[CellBuilds],
    *,
    benchmarker: Benchmarker,
    rules: GateRules,
    context: RunContext,
    references: Mapping[ModelPath, Reference],
    other_cells: int = 0,
) -> MeasurementRun:
    """Returns the measurements of all cells. Trouble with one cell is that cell's `error`.
    `other_cells` cells are measured elsewhere and share the error of a fail."""
    measuring = _Measuring(
        benchmarker=benchmarker,
        rules=rules,
        context=context,
        cell_count=other_cells + sum(map(_is_compared, builds)),
    )
    cells = []
    for pair in builds:
        reference = references.get(pair.cell.model)
        result = measuring.measure_cell(pair)
        cells.append(_with_reference(result, pair.head, reference, benchmarker))
    return MeasurementRun(
        device=context.device.fingerprint(),
        builds=tuple(builds),
        cells=tuple(cells),
        environment=dict(context.device.environment()),
        seed=str(context.seed),
    )


@dataclass(frozen=True, kw_only=True)
class _Measuring:
    """The state of one run. `cell_count` cells share the error of a fail."""

    benchmarker: Benchmarker
    rules: GateRules
    context: RunContext
    cell_count: int

    def measure_cell(self, pair: CellBuilds) -> CellMeasurement:
        clock = self.context.clock
        began = clock.monotonic()
        head, base = _usable(pair.head), _usable(pair.base)
        try:
            if head is None:
                return _unmeasured_cell(pair, "error")
            if base is None:
                return self._alone(pair, self.context.out / head.directory)
            if not _is_compared(pair):
                return _unmeasured_cell(pair, "identical")
            step = f"measure: {pair.cell.model} on {pair.cell.target}"
            self.context.progress.step(step, "measure")
            return self._compare_sides(pair, base, head)
        except MeasurementError as error:
            seconds = clock.monotonic() - began
            return _unmeasured_cell(pair, "invalid", notes=(str(error),), seconds=seconds)

    def _alone(self, pair: CellBuilds, head: Path) -> CellMeasurement:
        """Measures a head without a base, with as many inferences as its objective needs."""
        result = _unmeasured_cell(pair, "single", head_ms=self.benchmarker.single_ms(head))
        objective = self.rules.policies.objectives.get(pair.cell.model)
        if objective is None:
            return result
        inferences = inferences_needed(objective.percentile)
        return msgspec.structs.replace(result, alone=self.benchmarker.times(head, inferences))

    def _compare_sides(self, pair: CellBuilds, base: Build, head: Build) -> CellMeasurement:
        at_base, at_head = self.context.out / base.directory, self.context.out / head.directory
        result = self._with_layers(self._launches(pair, at_base, at_head), at_base, at_head)
        effect = statistics.fmean(launch.effect for launch in result.launches)
        if 100 * abs(effect) < EXPLAINED * self.rules.gate.margin_percent:
            return result
        self.context.progress.update(f"{pair.cell.model}: timing the layers of both sides")
        try:
            times = operator_times(at_base, at_head, self.benchmarker)
        except MeasurementError as error:
            notes = (*result.notes, f"the operators were not timed in the model: {error}")
            return msgspec.structs.replace(result, notes=notes)
        return msgspec.structs.replace(result, task_ms=times)

    def _with_layers(self, result: CellMeasurement, base: Path, head: Path) -> CellMeasurement:
        """Returns the measurement with the layers that differ, if they have a margin. Trouble with
        them takes nothing from the rest."""
        gate = self.rules.gate
        if gate.layers_margin_percent is None:
            return result
        self.context.progress.update(f"{result.cell.model}: timing the layers that differ")
        try:
            layers = launch_layers(
                self.benchmarker, (base, head), gate, self.cell_count, result.head_ms or 1.0
            )
        except MeasurementError as error:
            layers = DifferingLayers(problem=str(error))
        return msgspec.structs.replace(result, layers=layers)

    def _launches(self, pair: CellBuilds, base: Path, head: Path) -> CellMeasurement:
        clock = self.context.clock
        bench = self.benchmarker.pair(base, head, compares_outputs=base != head)
        control = self.benchmarker.pair(base, base)
        began = clock.monotonic()

        def say(progress: LaunchProgress) -> None:
            self.context.progress.update(_progress_text(pair, progress), progress.seconds_left)

        waiver = waived_gate(self.rules, pair.cell)
        series = launch_until_decided(
            bench, control, self.rules.gate, self.cell_count, say, waiver=waiver
        )
        return CellMeasurement(
            cell=pair.cell,
            launches=series.launches,
            analyses=series.analyses,
            stopped=series.stopped,
            seconds=clock.monotonic() - began,
            head_ms=statistics.median(x.head_ms for x in series.launches),
            controls=series.controls,
            probes=series.probes,
            starts=series.starts,
        )


def _progress_text(pair: CellBuilds, progress: LaunchProgress) -> str:
    if progress.most_probes:
        return (
            f"{pair.cell.model}: {progress.probes} of {progress.most_probes} probes of fresh starts"
        )
    is_telling = progress.high - progress.low < _TELLING_PERCENT  # False for infinities, too
    interval = f", {progress.low:+.1f} to {progress.high:+.1f}%" if is_telling else ""
    return (
        f"{pair.cell.model}: {progress.launches} of at most "
        f"{plural(progress.most, 'launch', 'launches')}, "
        f"{progress.center:+.1f}%{interval}"
    )


def _with_reference(
    result: CellMeasurement,
    head: Build | None,
    reference: Reference | None,
    benchmarker: Benchmarker,
) -> CellMeasurement:
    if reference is None or result.stopped in {"identical", "error"}:
        return result
    if head is not None and head.candidate == reference.runtime:
        return result  # it is its own reference
    choice = head.choice if head is not None else None
    is_measured = choice is not None and not choice.is_remembered
    measured_ms = choice.ms_of(reference.runtime) if choice is not None and is_measured else None
    if measured_ms is not None:
        return msgspec.structs.replace(result, reference_ms=measured_ms)
    try:
        milliseconds = benchmarker.reference_ms(reference.model, threads=reference.threads)
    except MeasurementError as error:
        notes = (*result.notes, f"no {reference.title} reference: {error}")
        return msgspec.structs.replace(result, notes=notes)
    return msgspec.structs.replace(result, reference_ms=milliseconds)


def _is_compared(pair: CellBuilds) -> bool:
    """Returns whether the cell shares the error of a fail: it has two sides that differ."""
    base, head = _usable(pair.base), _usable(pair.head)
    return base is not None and head is not None and base.key != head.key


def _usable(build: Build | None) -> Build | None:
    return build if build is not None and build.error is None else None


def _unmeasured_cell(
    pair: CellBuilds,
    stop: Literal["identical", "single", "invalid", "error"],
    *,
    head_ms: float | None = None,
    notes: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> CellMeasurement:
    return CellMeasurement(
        cell=pair.cell,
        launches=(),
        analyses=(),
        stopped=stop,
        seconds=seconds,
        head_ms=head_ms,
        notes=notes,
    )


# Operator times inside the model, base and head in turn.

_TURNS = ("base", "head", "head", "base")
"""In this order a drift of the machine affects both sides alike."""


def operator_times(base: Path, head: Path, benchmarker: Benchmarker) -> dict[str, dict[str, float]]:
    """Returns the milliseconds of one inference of two artifacts, by side and operator. Raises
    MeasurementError."""
    artifacts = {"base": base, "head": head}
    profiles: dict[str, list[Mapping[str, float]]] = {side: [] for side in artifacts}
    for side in _TURNS:
        profiles[side].append(benchmarker.operators_ms(artifacts[side]))
    return {side: _mean_of_each(times) for side, times in profiles.items()}


def _mean_of_each(times: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        operator: statistics.fmean(each[operator] for each in times if operator in each)
        for operator in times[0]
    }


# The user's own metric of both sides, beside latency.

_NOT_SCORED = {"identical", "error"}
"""Cells without a score: nothing differs, or there is nothing to score."""


def score_cells(
    run: MeasurementRun, *, out: Path, scorer: Scorer | None, progress: Progress
) -> MeasurementRun:
    """Returns every cell with its metric. A command that fails is that cell's problem."""
    if scorer is None:
        return run
    cells = [_cell(cell, run.builds, out, scorer, progress) for cell in run.cells]
    return msgspec.structs.replace(run, cells=tuple(cells))


def _cell(
    result: CellMeasurement,
    builds: Sequence[CellBuilds],
    out: Path,
    scorer: Scorer,
    progress: Progress,
) -> CellMeasurement:
    pair = next((build for build in builds if build.cell == result.cell), None)
    if result.stopped in _NOT_SCORED or pair is None:
        return result
    progress.step(f"metric: {result.cell.model} on {result.cell.target}")
    try:
        metric = Metric(base=_score(pair.base, out, scorer), head=_score(pair.head, out, scorer))
    except MeasurementError as error:
        metric = Metric(problem=str(error))
    return msgspec.structs.replace(result, metric=metric)


def _score(build: Build | None, out: Path, scorer: Scorer) -> float | None:
    if build is None or build.error is not None:
        return None
    return scorer.score((out / build.directory).resolve())
