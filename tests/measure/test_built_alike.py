"""A head has no schedule that its base had to give up; a base keeps what its head gives up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import CELL, make_build
from tests.support.tuning_records import make_key, make_record
from tunegate.artifacts.builds import Build, BuiltTask, Cell, WrongKernel
from tunegate.artifacts.changes import Side
from tunegate.config import TargetConfig
from tunegate.measure.build_sides import built_alike
from tunegate.ports import BuildJob, ModelJob
from tunegate_cache.format.records import WorkloadKey

RECORD = make_record()
WANTED: list[tuple[Cell, Side]] = [(CELL, "base"), (CELL, "head")]


class Checking:
    """A builder that schedules what it has records for, unless its side computes other numbers."""

    def __init__(self, wrong_on: str) -> None:
        self._wrong_on = wrong_on
        self.built: list[str] = []

    def build(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.built += [job.directory.name for job in jobs]
        return [self._build(job) for job in jobs]

    def _build(self, job: BuildJob) -> Build:
        side = job.directory.name
        is_wrong = side == self._wrong_on and bool(job.records[RECORD.key])
        rid = "r" if job.records[RECORD.key] and not is_wrong else ""
        task = BuiltTask(key=RECORD.key, name="conv", weight=1, source="exact", rid=rid, ms=None)
        wrong = WrongKernel(
            key=RECORD.key,
            shape=RECORD.shape,
            toolchain=RECORD.toolchain,
            name="conv",
            template=RECORD.template,
            decisions=RECORD.decisions,
            max_absolute=0.1,
            max_relative=0.2,
        )
        build = make_build(side, tasks=[task])
        return msgspec.structs.replace(build, wrong_kernels=(wrong,) if is_wrong else ())


@pytest.mark.parametrize(
    ("wrong_on", "scheduled", "built"),
    [
        ("neither", {"base": True, "head": True}, ["base", "head"]),
        ("base", {"base": False, "head": False}, ["base", "head", "head"]),
        ("head", {"base": True, "head": False}, ["base", "head"]),
    ],
)
def test_what_a_base_gives_up_its_head_gives_up_too(
    wrong_on: str, scheduled: dict[str, bool], built: list[str]
) -> None:
    builder = Checking(wrong_on)
    jobs: dict[tuple[Cell, Side], BuildJob] = {which: job(which[1]) for which in WANTED}
    builds = built_alike(
        builder, jobs, dict(zip(jobs, builder.build(list(jobs.values())), strict=True))
    )
    assert {side: bool(build.tasks[0].rid) for (_, side), build in builds.items()} == scheduled
    assert builder.built == built


def job(side: str) -> BuildJob:
    target = TargetConfig(name="cpu")
    model = ModelJob(file=Path("m.onnx"), path="m.onnx", shapes={}, target=target)
    records: dict[WorkloadKey, tuple[object, ...]] = {RECORD.key: (RECORD,), make_key("x"): ()}
    return BuildJob(model=model, records=records, sources={}, directory=Path(side))  # type: ignore[arg-type]
