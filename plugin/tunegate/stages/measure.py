"""Measure every cell here and now: base against head, in launches of fresh processes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tunegate.artifacts.builds import Build, CellBuilds
from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.measurements import CellMeasurement, MeasurementRun
from tunegate.config import GateConfig
from tunegate.errors import MeasurementError
from tunegate.measuring.operator_times import operator_times
from tunegate.measuring.paired_launches import Progressing, launch_until_decided
from tunegate.ports import Bench, Benchmarker, Clock, Device, Progress, Shapes

EXPLAINED = 0.5
"""The share of the margin from which on a change is explained: a smaller one is not looked into."""


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
    inferences: Mapping[ModelPath, int] | None = None,
    seed: str = "",
) -> MeasurementRun:
    """`seed` is the benchmarker's. `inferences` are how many an objective needs of a model without
    a base. A trouble with one cell is that cell's `error`; the others are measured all the same."""
    compared = sum(map(_is_compared, builds))
    cells = []
    for built in builds:
        measured = _cell(
            built,
            out=out,
            benchmarker=benchmarker,
            gate=gate,
            cells=compared,
            clock=clock,
            progress=progress,
            inferences=inferences or {},
        )
        reference = references.get(built.cell.model)
        cells.append(_with_reference(measured, built.head, reference, benchmarker))
    return MeasurementRun(
        device=device.fingerprint(),
        builds=tuple(builds),
        cells=tuple(cells),
        environment=dict(device.environment()),
        seed=seed,
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
    inferences: Mapping[ModelPath, int],
) -> CellMeasurement:
    started = clock.monotonic()
    head, base = _usable(built.head), _usable(built.base)
    try:
        if head is None:
            return _unmeasured(built, "error")
        if base is None:
            alone = out / head.directory
            milliseconds = benchmarker.single_ms(alone)
            found = _unmeasured(built, "single", head_ms=milliseconds)
            needed = inferences.get(built.cell.model)
            if needed is None:
                return found
            return msgspec.structs.replace(found, alone=benchmarker.times(alone, needed))
        if not _is_compared(built):
            return _unmeasured(built, "identical")
        ours = out / base.directory
        benches = benchmarker.pair(ours, out / head.directory), benchmarker.pair(ours, ours)
        progress.step(f"measure: {built.cell.model} on {built.cell.target}")
        measured = _launches(built, benches, gate, cells, clock, progress)
        return _taken_apart(measured, built, out, gate, benchmarker)
    except MeasurementError as error:
        seconds = clock.monotonic() - started
        return _unmeasured(built, "invalid", notes=(str(error),), seconds=seconds)


def _launches(
    built: CellBuilds,
    benches: tuple[Bench, Bench],
    gate: GateConfig,
    cells: int,
    clock: Clock,
    progress: Progress,
) -> CellMeasurement:
    started = clock.monotonic()
    bench, control = benches

    def say(far: Progressing) -> None:
        progress.update(_so_far(built, far))

    found = launch_until_decided(bench, control, gate, cells, say)
    return CellMeasurement(
        cell=built.cell,
        launches=found.launches,
        analyses=found.analyses,
        stopped=found.stopped,
        seconds=clock.monotonic() - started,
        head_ms=statistics.median(x.head_ms for x in found.launches),
        controls=found.controls,
        probes=found.probes,
        starts=found.starts,
    )


def _taken_apart(
    measured: CellMeasurement,
    built: CellBuilds,
    out: Path,
    gate: GateConfig,
    benchmarker: Benchmarker,
) -> CellMeasurement:
    """What every operator takes inside the model, on both sides, where
    there is a change to explain."""
    effect = statistics.fmean(launch.effect for launch in measured.launches)
    if 100 * abs(effect) < EXPLAINED * gate.margin_percent or not built.base or not built.head:
        return measured
    try:
        base, head = out / built.base.directory, out / built.head.directory
        times = operator_times(base, head, benchmarker)
    except MeasurementError as error:
        notes = (*measured.notes, f"the operators were not timed in the model: {error}")
        return msgspec.structs.replace(measured, notes=notes)
    return msgspec.structs.replace(measured, task_ms=times)


def _so_far(built: CellBuilds, far: Progressing) -> str:
    if far.most_probes:
        return f"{built.cell.model}: {far.probes} of {far.most_probes} short looks at fresh starts"
    interval = f", {far.low:+.1f} to {far.high:+.1f} %" if math.isfinite(far.low) else ""
    return (
        f"{built.cell.model}: {far.launches} of at most {far.most} launches, "
        f"{far.center:+.1f} %{interval}, likely {far.seconds_left:.0f} s more"
    )


def _with_reference(
    measured: CellMeasurement,
    head: Build | None,
    reference: Reference | None,
    benchmarker: Benchmarker,
) -> CellMeasurement:
    if reference is None or measured.stopped in {"identical", "error"}:
        return measured
    if head is not None and head.runtime == "onnxruntime":
        return measured  # it is its own reference
    if head is not None and head.choice is not None and head.choice.onnxruntime_ms is not None:
        return msgspec.structs.replace(measured, reference_ms=head.choice.onnxruntime_ms)
    try:
        milliseconds = benchmarker.reference_ms(
            reference.file, shapes=reference.shapes, threads=reference.threads
        )
    except MeasurementError as error:
        notes = (*measured.notes, f"no ONNX Runtime reference: {error}")
        return msgspec.structs.replace(measured, notes=notes)
    return msgspec.structs.replace(measured, reference_ms=milliseconds)


def _is_compared(built: CellBuilds) -> bool:
    """Whether it takes part of the error of a fail: there are two sides, and they differ."""
    base, head = _usable(built.base), _usable(built.head)
    return base is not None and head is not None and base.key != head.key


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
        analyses=(),
        stopped=stopped,
        seconds=seconds,
        head_ms=head_ms,
        notes=notes,
    )
