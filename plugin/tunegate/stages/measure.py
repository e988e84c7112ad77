"""Measure every cell here and now: base against head, in launches of fresh processes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.measurements import CellMeasurement, Launch, MeasurementRun
from tunegate.config import GateConfig
from tunegate.errors import MeasurementError
from tunegate.gate.looks import PLANNED, affordable_looks
from tunegate.gate.sequential import Rule, replanned_pairs, stop_after
from tunegate.ports import Bench, Benchmarker, Clock, Device, Progress, Shapes

_TRIES = 2
EXPLAINED = 0.5
"""Of the margin: a smaller change is not looked into."""


class Reference(msgspec.Struct, frozen=True):
    """The head model for the ONNX Runtime column."""

    file: Path
    shapes: Shapes
    threads: int


def measure(
    builds: Sequence[CellBuilds],
    *,
    out: Path,
    references: Mapping[ModelPath, Reference],
    benchmarker: Benchmarker,
    device: Device,
    gate: GateConfig,
    clock: Clock,
    progress: Progress,
) -> MeasurementRun:
    """A trouble with one cell is that cell's `error`; the others are measured all the same."""
    cells = []
    for built in builds:
        measured = _cell(
            built,
            out=out,
            benchmarker=benchmarker,
            gate=gate,
            cells=len(builds),
            clock=clock,
            progress=progress,
        )
        reference = references.get(built.cell.model)
        cells.append(_with_reference(measured, built.head, reference, benchmarker))
    return MeasurementRun(
        device=device.fingerprint(),
        builds=tuple(builds),
        cells=tuple(cells),
        environment=dict(device.environment()),
    )


def _cell(
    built: CellBuilds,
    *,
    out: Path,
    benchmarker: Benchmarker,
    gate: GateConfig,
    cells: int,
    clock: Clock,
    progress: Progress,
) -> CellMeasurement:
    started = clock.monotonic()
    head, base = _usable(built.head), _usable(built.base)
    try:
        if head is None:
            return _unmeasured(built, "error")
        if base is None:
            milliseconds = benchmarker.single_ms(out / head.directory)
            return _unmeasured(built, "single", head_ms=milliseconds)
        if base.key == head.key:
            return _unmeasured(built, "identical")
        bench = benchmarker.pair(out / base.directory, out / head.directory)
        progress.step(f"measure: {built.cell.model} on {built.cell.target}")
        measured = _launches(built, bench, gate, cells, clock, progress)
        return _taken_apart(measured, built, out, gate, benchmarker)
    except MeasurementError as error:
        seconds = clock.monotonic() - started
        return _unmeasured(built, "invalid", notes=(str(error),), seconds=seconds)


def _launches(
    built: CellBuilds,
    bench: Bench,
    gate: GateConfig,
    cells: int,
    clock: Clock,
    progress: Progress,
) -> CellMeasurement:
    started = clock.monotonic()
    launches = [_launch(bench, gate.pairs)]
    # Only the launches to come are planned by what the first one cost.
    looks = affordable_looks(gate.seconds, launches[0].seconds)
    rule = Rule(margin_percent=gate.margin_percent, looks=looks, cells=cells)
    pairs = gate.pairs
    while (stop := stop_after([x.effect for x in launches], rule)) is None:
        if len(launches) == PLANNED[0]:
            pairs = _replanned(bench, launches)
        launches.append(_launch(bench, pairs))
        progress.update(_so_far(built, launches, looks))
    return CellMeasurement(
        cell=built.cell,
        launches=tuple(launches),
        looks=looks,
        stopped=stop,
        seconds=clock.monotonic() - started,
        head_ms=statistics.median(x.head_ms for x in launches),
    )


def _taken_apart(
    measured: CellMeasurement,
    built: CellBuilds,
    out: Path,
    gate: GateConfig,
    benchmarker: Benchmarker,
) -> CellMeasurement:
    """What every operator takes inside the model, on both sides, where there is a change to explain."""
    effect = statistics.fmean(launch.effect for launch in measured.launches)
    if 100 * abs(effect) < EXPLAINED * gate.margin_percent or not built.base or not built.head:
        return measured
    try:
        times = {
            "base": dict(benchmarker.operators_ms(out / built.base.directory)),
            "head": dict(benchmarker.operators_ms(out / built.head.directory)),
        }
    except MeasurementError as error:
        notes = (*measured.notes, f"the operators were not timed in the model: {error}")
        return msgspec.structs.replace(measured, notes=notes)
    return msgspec.structs.replace(measured, task_ms=times)


def _launch(bench: Bench, pairs: int) -> Launch:
    """A launch that breaks is tried once more: fresh processes, nothing kept of the broken one."""
    for attempt in range(_TRIES):
        try:
            return bench.launch(pairs)
        except MeasurementError:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError


def _replanned(bench: Bench, launches: Sequence[Launch]) -> int:
    effects = [launch.effect for launch in launches]
    return replanned_pairs(
        bench.within_spread,
        statistics.stdev(effects),
        start_seconds=bench.start_seconds,
        pair_seconds=bench.pair_seconds,
    )


def _so_far(built: CellBuilds, launches: Sequence[Launch], looks: tuple[int, ...]) -> str:
    percent = 100 * statistics.fmean(launch.effect for launch in launches)
    return f"{built.cell.model}: {len(launches)} of at most {looks[-1]} launches, {percent:+.1f} %"


def _with_reference(
    measured: CellMeasurement,
    head: Build | None,
    reference: Reference | None,
    benchmarker: Benchmarker,
) -> CellMeasurement:
    if reference is None or measured.stopped in {"identical", "error"}:
        return measured
    if head is not None and head.choice is not None and head.choice.onnxruntime_ms is not None:
        return msgspec.structs.replace(measured, reference_ms=head.choice.onnxruntime_ms)
    if head is not None and head.runtime == "onnxruntime":
        return measured
    try:
        milliseconds = benchmarker.reference_ms(
            reference.file, shapes=reference.shapes, threads=reference.threads
        )
    except MeasurementError as error:
        notes = (*measured.notes, f"no ONNX Runtime reference: {error}")
        return msgspec.structs.replace(measured, notes=notes)
    return msgspec.structs.replace(measured, reference_ms=milliseconds)


def _usable(build: Build | None) -> Build | None:
    return build if build is not None and build.error is None else None


def _unmeasured(
    built: CellBuilds,
    stopped: Literal["identical", "single", "invalid", "error"],
    *,
    head_ms: float | None = None,
    notes: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> CellMeasurement:
    return CellMeasurement(
        cell=built.cell,
        launches=(),
        looks=(),
        stopped=stopped,
        seconds=seconds,
        head_ms=head_ms,
        notes=notes,
    )
