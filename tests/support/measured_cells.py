"""Builders of builds, launches and runs for the stages of the gate."""

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.tuning_records import make_key
from tunegate.artifacts.builds import Build, BuiltTask, Cell, CellBuilds
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelVersion, Revisions
from tunegate.artifacts.measurements import CellMeasurement, Launch, MeasurementRun
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, Clock, ModelJob, Progress
from tunegate.tools import RunContext
from tunegate_cache.format.records import DeviceFingerprint

MODEL, TARGET = "models/m.onnx", "cpu"
CELL = Cell(model=MODEL, target=TARGET)
DEVICE = DeviceFingerprint(name="cpu", kind="cpu", units=2, memory_bytes=8)


def make_task(
    name: str, ms: float | None, *, rid: str = "r", source: ScheduleSource = "search"
) -> BuiltTask:
    return BuiltTask(key=make_key(name), name=name, weight=1, source=source, rid=rid, ms=ms)


def make_build(
    key: str = "k", *, error: str | None = None, tasks: Sequence[BuiltTask] = ()
) -> Build:
    return Build(
        key=key,
        directory=f"builds/{key}",
        tasks=tuple(tasks),
        check=None,
        error=error,
        size_bytes=1,
        seconds=1.0,
        runtime="tvm",
        title="TVM",
    )


def make_model(file: Path = Path("m.onnx"), **fields: object) -> ModelJob:
    usual = {"path": "m.onnx", "shapes": {}, "target": TargetConfig(name="cpu", threads=1)}
    return ModelJob(file=file, **(usual | fields))  # type: ignore[arg-type]  # a builder


def make_job(model: ModelJob, directory: Path, **fields: object) -> BuildJob:
    usual: dict[str, object] = {"records": {}, "sources": {}}
    return BuildJob(model=model, directory=directory, **(usual | fields))  # type: ignore[arg-type]


def make_builds(base: Build | None, head: Build | None, cell: Cell = CELL) -> CellBuilds:
    return CellBuilds(cell=cell, base=base, head=head)


def make_launches(effects: Sequence[float]) -> tuple[Launch, ...]:
    return tuple(
        Launch(effect=e, base_ms=1.0, head_ms=1.0 + e, pairs=12, seconds=1.0) for e in effects
    )


def make_probes(effects: Sequence[float], count: int) -> tuple[Launch, ...]:
    """Probes of the head that see what the launches saw."""
    return make_launches((statistics.fmean(effects),) * count)


def make_measurement(effects: Sequence[float] = (), **changes: object) -> CellMeasurement:
    """Enough was seen for a pass, where the medians pass."""
    fields = {
        "cell": CELL,
        "launches": make_launches(effects),
        "analyses": (4, 6, 9) if effects else (),
        "stopped": "decided",
        "seconds": 1.0,
        "probes": make_probes(effects, 15) if effects else (),
        **changes,
    }
    return CellMeasurement(**fields)  # type: ignore[arg-type]


def make_run(measurement: CellMeasurement, builds: CellBuilds) -> MeasurementRun:
    return MeasurementRun(device=DEVICE, builds=(builds,), cells=(measurement,))


def make_changes(*, is_new: bool = False, targets: tuple[str, ...] = (TARGET,)) -> ChangeSet:
    change = ModelChange(
        path=MODEL,
        kind="added" if is_new else "modified",
        change=None if is_new else "structural",
        base=None if is_new else make_version("b"),
        head=make_version("h"),
        targets=targets,
    )
    return ChangeSet(revisions=Revisions(base="b" * 40, head="h" * 40), models=(change,))


def make_version(content: str) -> ModelVersion:
    return ModelVersion(
        revision="r",
        path=MODEL,
        content_digest=content,
        graph_digest=None,
        storage="git",
        size_bytes=1,
    )


class StillMachine:
    """A machine without a disturbance, as `ports.Device`."""

    def fingerprint(self) -> DeviceFingerprint:
        return DEVICE

    def machine(self) -> str:
        return "this one"

    def environment(self) -> Mapping[str, str]:
        return {"cpu": "still"}


def make_context(out: Path, progress: Progress, clock: Clock = time) -> RunContext:
    return RunContext(device=StillMachine(), clock=clock, progress=progress, out=out, seed=1)
