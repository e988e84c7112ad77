"""A build that would end as another one did is not made."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import make_build
from tests.support.tuning_records import make_key
from tunegate.artifacts.builds import Build, unbuilt
from tunegate.artifacts.candidates import LAUNCH
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.finished_build import DeadBuilds

DIED = unbuilt("m: the compiler failed (CUDA error 700) on this model", crashed=True)
REFUSED = unbuilt("m: TVM does not offer one launch: it is too large.")


def job(file: str = "base/m", path: str = "m", **changes: object) -> BuildJob:
    model = ModelJob(file=Path(file), path=path, shapes={}, target=TargetConfig(name="gpu"))
    found = BuildJob(model=model, records={}, sources={}, directory=Path(file, "out"))
    return msgspec.structs.replace(found, **changes)


def after(died: BuildJob, build: Build) -> DeadBuilds:
    """`new` has other kernels than `base/m` and `head/m`."""
    builds = DeadBuilds(lambda model: "new" if "new" in str(model.file) else "same")
    builds.add(died, build)
    return builds


def test_new_weights_die_of_what_the_base_died_of() -> None:
    assert after(job(), DIED).of(job("head/m")) == DIED


@pytest.mark.parametrize(
    "other",
    [
        job("new/m"),
        job("head/m", path="other"),
        job("head/m", settings={LAUNCH: "whole"}),
        job("head/m", sources={make_key("a"): "transfer"}),
    ],
    ids=["kernels", "model", "settings", "schedules"],
)
def test_another_build_is_made(other: BuildJob) -> None:
    assert after(job(), DIED).of(other) is None


def test_one_launch_is_refused_once_for_both_sides() -> None:
    whole = {LAUNCH: "whole"}
    assert after(job(settings=whole), REFUSED).of(job("head/m", settings=whole)) == REFUSED
    assert after(job(), REFUSED).of(job("head/m")) is None


def test_what_fails_when_it_is_run_may_do_so_on_its_own_inputs() -> None:
    linked = msgspec.structs.replace(make_build("k"), error="it does not run", crashed=True)
    assert after(job(), linked).of(job("head/m")) is None
    assert after(job(), make_build("k")).of(job("head/m")) is None
