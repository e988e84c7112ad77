"""Turns launches into intervals, and finds the tasks that hold the difference. Pure."""

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tunegate.artifacts import measurements
from tunegate.artifacts.builds import BuiltTask, Cell, CellBuilds
from tunegate.config import GateConfig
from tunegate.decide.assessment import Assessment, assess
from tunegate.decide.decision import (
    Bounds,
    CellDecision,
    bounds,
    p_value,
    percent_interval,
    projected_launches,
    shares,
)
from tunegate.decide.gpu_clocks import usual_clocks
from tunegate.decide.inside_launch import mean_effects
from tunegate.decide.margins_beside_latency import energy_change, layers_change, load_change
from tunegate.decide.sequential import stopping_rule

_NEGLIGIBLE_MS = 1e-6
_NOISE_OF_MODEL = 0.005
_NOISE_OF_OPERATOR = 0.05


def compare(
    run: measurements.MeasurementRun, gate: GateConfig
) -> tuple[measurements.Comparison, ...]:
    """Returns a comparison for each cell, in order."""
    builds = {each.cell: each for each in run.builds}
    cells = _shares(run.cells, gate)
    return tuple(
        compare_cell(cell, builds[cell.cell], gate, (cells[cell.cell], len(cells)))
        if cell.cell in cells
        else _without_launches(cell)
        for cell in run.cells
    )


def _shares(cells: Sequence[measurements.CellMeasurement], gate: GateConfig) -> dict[Cell, int]:
    """Returns, for each cell with an interval, the number of parts that the error of a fail is
    split into."""
    assessments = {each.cell: _assess_cell(each, gate, cells=1) for each in cells}
    analyses = {each.cell: len(each.analyses) for each in cells}
    p_values = {
        cell: p_value(
            [launch.effect for launch in assessment.launches],
            margin=math.log1p(gate.margin_percent / 100),
            analyses=analyses[cell],
        )
        for cell, assessment in assessments.items()
        if assessment is not None
    }
    return dict(zip(p_values, shares(list(p_values.values())), strict=True))


def _assess_cell(
    measurement: measurements.CellMeasurement, gate: GateConfig, cells: int
) -> Assessment | None:
    if not measurement.launches or not measurement.analyses:
        return None
    rule = stopping_rule(gate, measurement.analyses, cells)
    return assess(measurement.launches, measurement.probes, measurement.starts, rule)


def compare_cell(
    measurement: measurements.CellMeasurement,
    builds: CellBuilds,
    gate: GateConfig,
    parts: tuple[int, int] = (1, 1),
) -> measurements.Comparison:
    """Returns the comparison of one cell. `parts` are the parts of the error of a fail: by latency,
    and by energy or loading."""
    cells, together = parts
    assessment = _assess_cell(measurement, gate, cells)
    if assessment is None:
        return _without_launches(measurement)
    launches, analyses = assessment.launches, len(measurement.analyses)
    interval = _with_mean(assessment.bounds, launches, analyses, assessment.median)
    margin = math.log1p(gate.margin_percent / 100)
    base_ms = statistics.median(launch.base_ms for launch in launches)
    head_ms = statistics.median(launch.head_ms for launch in launches)
    # A slowdown below the absolute floor, in microseconds, fails by none of the three rules: by the
    # median, by the inferences inside of launches, and by rare launches that are slow.
    change = percent_interval(assessment.bounds)
    by_median = _with_floor(assessment.median, base_ms, head_ms, change, gate)
    tests = tuple(_inside_with_floor(each, gate) for each in assessment.inside)
    modes = _excluded_with_floor(assessment, measurement.probes, gate)
    assessment = msgspec.structs.replace(assessment, median=by_median, inside=tests, excluded=modes)
    return measurements.Comparison(
        cell=measurement.cell,
        base_ms=base_ms,
        head_ms=head_ms,
        reference_ms=measurement.reference_ms,
        change_percent=percent_interval(interval),
        decision=assessment.decision,
        median=assessment.median,
        launches=len(launches),
        effects_percent=tuple(100 * math.expm1(launch.effect) for launch in launches),
        projected_launches=projected_launches(interval, margin, analyses=analyses),
        stopped=measurement.stopped,
        differences=operator_differences(builds, measurement),
        inside=assessment.inside,
        excluded=assessment.excluded,
        clocks=usual_clocks([launch.clocks for launch in launches if launch.clocks]),
        energy=energy_change(
            launches, gate.energy_margin_percent, analyses=analyses, cells=together
        ),
        load=load_change(launches, gate.load_margin_percent, analyses=analyses, cells=together),
        layers=layers_change(measurement.layers, gate.layers_margin_percent, cells=together),
    )


_UNLIKE, _UNLIKE_ERROR = 0.01, 0.005
"""The smallest difference of mean and median that counts, in ln units, and the chance of a false
one."""


def _with_mean(
    interval: Bounds, launches: Sequence[measurements.Launch], analyses: int, median: CellDecision
) -> Bounds:
    """Returns the bounds of the median, widened to those of the mean where mean and median surely
    differ. If other work shares the model's cores, most inferences of both sides wait one scheduler
    turn, and a part of the change shows only in those that wait two: the mean sees it, the median
    does not. A proven slowdown keeps its lower bound."""
    effects = mean_effects(launches)
    if len(effects) < len(launches):
        return interval
    apart = [by_mean - launch.effect for by_mean, launch in zip(effects, launches, strict=True)]
    unlike = bounds(apart, analyses=1, cells=1, fail_error=_UNLIKE_ERROR)
    low = 2 * unlike.center - unlike.low  # the bound on the other side
    mean = bounds(effects, analyses=analyses, cells=1)
    if unlike.low > 0 and unlike.center > _UNLIKE:
        return msgspec.structs.replace(interval, high=max(interval.high, mean.high))
    if low < 0 and unlike.center < -_UNLIKE and median != "fail":
        return msgspec.structs.replace(interval, low=min(interval.low, mean.low))
    return interval


def _excluded_with_floor(
    assessment: Assessment, probes: Sequence[measurements.Launch], gate: GateConfig
) -> measurements.Excluded:
    """Returns the excluded slow modes. If the medians are slower by less than the absolute floor,
    all starts together must be, too."""
    if assessment.median != "fail":
        return assessment.excluded
    starts = (*assessment.launches, *probes)
    milliseconds = statistics.fmean(
        max(start.head_ms - start.base_ms, start.base_ms * math.expm1(start.effect))
        for start in starts
    )
    is_tiny = milliseconds * 1e3 < gate.absolute_floor_us
    return msgspec.structs.replace(
        assessment.excluded, is_clean=assessment.excluded.is_clean or is_tiny
    )


def _inside_with_floor(inside: measurements.Inside, gate: GateConfig) -> measurements.Inside:
    change = inside.change_percent
    decision = _with_floor(inside.decision, inside.base_ms, inside.head_ms, change, gate)
    return msgspec.structs.replace(inside, decision=decision)


def _without_launches(measurement: measurements.CellMeasurement) -> measurements.Comparison:
    return measurements.Comparison(
        cell=measurement.cell,
        base_ms=None,
        head_ms=measurement.head_ms,
        reference_ms=measurement.reference_ms,
        change_percent=None,
        decision=None,
        launches=0,
        effects_percent=(),
        projected_launches=None,
        stopped=measurement.stopped,
    )


def _with_floor(
    decision: CellDecision,
    base_ms: float,
    head_ms: float,
    change: measurements.Interval,
    gate: GateConfig,
) -> CellDecision:
    """Applies the absolute floor: below about 20 microseconds a percentage alone flaps, so a fail
    must exceed the floor as well. The change over paired blocks counts too: a head whose blocks are
    slow only half of the time may have the base's median."""
    microseconds = max(head_ms - base_ms, base_ms * change.center / 100) * 1e3
    return "pass" if decision == "fail" and microseconds < gate.absolute_floor_us else decision


def operator_differences(
    builds: CellBuilds, measurement: measurements.CellMeasurement
) -> tuple[measurements.TaskDifference, ...]:
    """Returns the cost of each operator on both sides, largest increase first: timed inside the
    model if possible, otherwise by tuning times if both sides have them."""
    times = measurement.task_ms
    if "base" in times and "head" in times:
        return differences_in_model(builds, times["base"], times["head"])
    return task_differences(builds)


def differences_in_model(
    builds: CellBuilds, before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[measurements.TaskDifference, ...]:
    """Returns the differences of operators, matched by name. Differences within the noise are left
    out."""
    sources = {
        task.name: task.source
        for build in (builds.base, builds.head)
        if build is not None
        for task in build.tasks
    }
    least_ms = _NOISE_OF_MODEL * max(sum(before.values()), sum(after.values()))
    differences = [
        measurements.TaskDifference(
            name=name,
            base_ms=before.get(name),
            head_ms=after.get(name),
            source=sources.get(name, "library"),
            library="" if name in sources else _library(builds, is_in_head=name in after),
        )
        for name in dict.fromkeys([*after, *before])
        if _is_changed(before.get(name, 0.0), after.get(name, 0.0), least_ms)
    ]
    return tuple(sorted(differences, key=lambda d: -d.difference_ms))


def _library(builds: CellBuilds, *, is_in_head: bool) -> str:
    """Returns the runtime of a layer without a schedule: the build's own, or the one that runs what
    the build did not compile."""
    build = builds.head if is_in_head else builds.base
    if build is None or build.tasks or not build.title:
        return "ONNX Runtime"
    return build.title


def _is_changed(before_ms: float, after_ms: float, least_ms: float) -> bool:
    difference = abs(after_ms - before_ms)
    return difference > least_ms and difference > _NOISE_OF_OPERATOR * max(before_ms, after_ms)


def task_differences(builds: CellBuilds) -> tuple[measurements.TaskDifference, ...]:
    """Returns the cost of each task on both sides, largest increase first.

    Tasks match by workload, otherwise by a name that each side has once (a changed layer). A cost
    is the tuning time of one call times the calls of one inference. Nothing is returned if
    different candidates run the two sides, or if tuning has not timed a changed task as its side
    runs it (lower precision, or a schedule that was never measured).
    """
    if builds.base is None or builds.head is None or builds.base.candidate != builds.head.candidate:
        return ()
    pairs = [
        (before, after)
        for before, after in _pair_tasks(builds.base.tasks, builds.head.tasks)
        if _task_differs(before, after)
    ]
    if any(task is not None and task.ms is None for pair in pairs for task in pair):
        return ()
    differences = [_difference(before, after) for before, after in pairs]
    return tuple(sorted(differences, key=lambda d: -d.difference_ms))


def _pair_tasks(
    base: Sequence[BuiltTask], head: Sequence[BuiltTask]
) -> Iterator[tuple[BuiltTask | None, BuiltTask | None]]:
    """Yields each task of either side once, with its counterpart on the other."""
    before = {task.key.workload: task for task in base}
    after = {task.key.workload: task for task in head}
    only_before = [task for workload, task in before.items() if workload not in after]
    new = [task for workload, task in after.items() if workload not in before]
    names = [Counter(task.name for task in side) for side in (only_before, new)]
    task_before = {
        task.name: task for task in only_before if names[0][task.name] == names[1][task.name] == 1
    }
    for workload, task in after.items():
        yield before.get(workload, task_before.get(task.name) if task in new else None), task
    yield from ((task, None) for task in only_before if task.name not in task_before)


def _task_differs(before: BuiltTask | None, after: BuiltTask | None) -> bool:
    """Returns whether the task belongs among the differences: one side lacks it, its code differs,
    or both sides timed it and the times differ. The same code timed on one side alone does not
    count."""
    if before is None or after is None:
        return True
    if _code(before) != _code(after):
        return True
    old, new = _ms(before), _ms(after)
    return old is not None and new is not None and abs(old - new) > _NEGLIGIBLE_MS


def _code(task: BuiltTask) -> tuple[str, int, bool]:
    return task.rid, task.weight, task.source == "tiles"


def _difference(before: BuiltTask | None, after: BuiltTask | None) -> measurements.TaskDifference:
    layer = after or before
    return measurements.TaskDifference(
        name=layer.name if layer is not None else "",
        base_ms=_ms(before),
        head_ms=_ms(after),
        source=layer.source if layer is not None else "default",
        is_alone=True,
    )


def _ms(task: BuiltTask | None) -> float | None:
    return None if task is None or task.ms is None else task.weight * task.ms
