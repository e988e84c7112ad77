"""Requests to the compiler's children: each has a directory of its own."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import make_build, make_job, make_model
from tests.support.tuning_records import make_key
from tests.support.worker_requests import build_request
from tunegate.artifacts.builds import Build, NumericCheck, unbuilt
from tunegate.artifacts.tasks import ScheduleSource
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm import compile_requests
from tunegate.runtimes.tvm.finished_build import made_again, risky_schedules
from tunegate.tune.compiler_protocol import Built, CheckArtifact, Checked, MendBuild
from tunegate_cache.format.records import WorkloadKey


def test_requests_share_no_directory(tmp_path: Path) -> None:
    model = make_model(tmp_path / "m.onnx")
    job = make_job(model, tmp_path / "out")
    requests = compile_requests.CompileRequests(tmp_path, seed=1)
    assert requests.tasks(model).scratch != requests.build(job).scratch


def test_a_build_in_other_numbers_has_its_variant_and_precision(tmp_path: Path) -> None:
    numbers = {"variant": "bf16", "settings": {"precision": "bfloat16"}, "samples": 3}
    job = make_job(make_model(tmp_path / "m.onnx"), tmp_path / "out", **numbers)
    requests = compile_requests.CompileRequests(tmp_path, seed=1)
    asked = requests.build(job)
    assert (asked.variant, asked.precision) == ("bf16", "bfloat16")


@pytest.mark.parametrize("settings", [{}, {"launch": "whole"}, {"precision": "int8"}])
def test_a_build_has_its_candidates_settings(tmp_path: Path, settings: dict[str, str]) -> None:
    job = make_job(make_model(tmp_path / "m.onnx"), tmp_path, settings=settings)
    assert compile_requests.CompileRequests(tmp_path, seed=1).build(job).settings == settings


def test_a_model_is_open_for_one_target_and_one_set_of_shapes(tmp_path: Path) -> None:
    jobs = [
        ModelJob(file=tmp_path / "m.onnx", path="m", shapes=shapes, target=TargetConfig(name=name))
        for shapes in ({}, {"x": (1, 2)})
        for name in ("a", "b")
    ]
    assert len({compile_requests.opened_key(job) for job in jobs}) == 4


@pytest.mark.parametrize(
    ("target", "settings", "does"),
    [
        (TargetConfig(name="a", kind="cuda", arch="sm_90"), {}, True),
        (TargetConfig(name="a", kind="cuda", arch="sm_90"), {"launch": "whole"}, False),
        (TargetConfig(name="a", kind="cuda", arch="sm_90", cuda_graphs=False), {}, False),
        (TargetConfig(name="a"), {}, False),
    ],
    ids=["cuda", "one-launch", "without", "cpu"],
)
def test_one_launch_needs_no_graph(
    tmp_path: Path, target: TargetConfig, settings: dict[str, str], does: bool
) -> None:
    model = ModelJob(file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=target)
    job = BuildJob(model=model, records={}, sources={}, directory=tmp_path, settings=settings)
    assert compile_requests.has_graphs(job) is does


# A build is checked, and mended where it computes other numbers.

BUILD = build_request(Path("m.onnx"), Path(), directory="out")
BUILT = Built(key="k", reference="ref", functions=(), size_bytes=1, seconds=1.0)
RIGHT = NumericCheck(passed=True, max_absolute=0.0, max_relative=0.0, tolerance=0.1)
WRONG = msgspec.structs.replace(RIGHT, passed=False, detail="off by 3")
CHECK = CheckArtifact(directory="out", reference="ref", kind="llvm", seeds=(1, 2))


def test_a_build_is_checked_and_nothing_more_is_asked_where_it_is_right() -> None:
    ask = compile_requests.questions_after_build(BUILD, seeds=(1, 2), limit_seconds=900.0)
    assert ask(BUILT) == CHECK
    assert ask(Checked(RIGHT)) is None
    assert ask(Checked()) is None


def test_a_build_in_other_numbers_tells_its_error_in_place_of_a_check() -> None:
    ask = compile_requests.questions_after_build(
        BUILD, seeds=(1, 2), samples=(7, 8), limit_seconds=900.0
    )
    asked = ask(BUILT)
    assert isinstance(asked, CheckArtifact)
    assert asked.samples == (7, 8)
    assert ask(Checked()) is None


def test_a_build_that_computes_other_numbers_is_mended_in_half_the_time() -> None:
    for limit, seconds in ((60.0, 30.0), (900.0, compile_requests.MAX_MENDING_SECONDS)):
        ask = compile_requests.questions_after_build(BUILD, seeds=(1, 2), limit_seconds=limit)
        ask(BUILT)
        assert ask(Checked(WRONG)) == MendBuild(build=BUILD, check=CHECK, limit_seconds=seconds)


# A build that dies of schedules that nobody has compiled is made again without them.

A, B, C = make_key("a"), make_key("b"), make_key("c")
JOB = make_job(make_model(), Path("d"), sources={A: "prior", B: "transfer", C: "exact"})
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
    ("blamed", "left"),
    [
        ({1: B.workload}, {A: "prior", C: "exact"}),
        ({1: C.workload}, {C: "exact"}),
        ({0: B.workload}, {C: "exact"}),
    ],
    ids=["a risky one", "none that is risky", "of another build"],
)
def test_only_the_schedule_that_a_build_died_of_is_given_up(
    blamed: dict[int, str], left: dict[WorkloadKey, ScheduleSource]
) -> None:
    builder = Builder()
    made_again([JOB, JOB], [make_build("fine"), DIED], builder, blamed)
    assert builder.given[0].sources == left


@pytest.mark.parametrize(
    ("job", "build"), [(SETTLED, DIED), (JOB, unbuilt("refused"))], ids=["settled", "refused"]
)
def test_what_did_not_die_of_them_is_not_made_again(job: BuildJob, build: Build) -> None:
    builder = Builder()
    assert made_again([job], [build], builder) == [build]
    assert builder.given == []
