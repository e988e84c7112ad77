"""A build that dies of schedules that nobody has compiled is made again without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import make_build
from tests.support.tuning_records import make_key
from tunegate.artifacts.builds import Build, unbuilt
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.finished_build import made_again, risky_schedules

A, B, C = make_key("a"), make_key("b"), make_key("c")
JOB = BuildJob(
    model=ModelJob(file=Path("m"), path="m", shapes={}, target=TargetConfig(name="cpu")),
    records={},
    sources={A: "prior", B: "transfer", C: "exact"},
    directory=Path("d"),
)
SETTLED = msgspec.structs.replace(JOB, settled=frozenset({A, B}))
DIED = unbuilt("did not finish in 300 s", crashed=True)


def test_what_was_picked_is_risky_until_the_other_side_has_compiled_it() -> None:
    assert risky_schedules(JOB) == {A, B}
    assert not risky_schedules(SETTLED)


def test_what_was_transferred_to_a_gpu_is_risky_too() -> None:
    gpu = TargetConfig(name="gpu", kind="cuda", arch="sm_80")
    model = msgspec.structs.replace(JOB.model, target=gpu)
    assert B in risky_schedules(msgspec.structs.replace(JOB, model=model))


class Builder:
    def __init__(self) -> None:
        self.given: list[BuildJob] = []

    def __call__(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.given += jobs
        return [make_build("again") for _ in jobs]


def test_a_build_that_died_is_made_again_with_default_schedules_and_says_so() -> None:
    builder = Builder()
    fine = make_build("fine")
    one, other = made_again([JOB, JOB], [fine, DIED], builder)
    assert (one, other.key, other.without_picks) == (fine, "again", "did not finish in 300 s")
    (given,) = builder.given
    assert given.sources == {C: "exact"}


@pytest.mark.parametrize(
    ("job", "build"), [(SETTLED, DIED), (JOB, unbuilt("refused"))], ids=["settled", "refused"]
)
def test_what_did_not_die_of_them_is_not_made_again(job: BuildJob, build: Build) -> None:
    builder = Builder()
    assert made_again([job], [build], builder) == [build]
    assert builder.given == []
