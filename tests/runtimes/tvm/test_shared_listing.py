from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import onnx
import pytest

from tests.support.measured_cells import make_build, make_task
from tests.support.small_onnx import conv_model, save
from tests.support.tuning_tasks import make_task as make_tuning_task
from tunegate.artifacts.builds import Build, unbuilt
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compile_requests import KernelDigests, TakenLists, with_same_kernels
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.finished_build import in_other_layout, refusal_of_tuning
from tunegate_cache.format.how_built import HowBuilt

CPU = TargetConfig(name="cpu", threads=1)


def job(directory: Path, name: str, model: onnx.ModelProto, path: str = "m.onnx") -> ModelJob:
    return ModelJob(file=save(model, directory / name), path=path, shapes={}, target=CPU)


def test_one_side_is_opened_where_weights_alone_differ(tmp_path: Path) -> None:
    head, base = (job(tmp_path, f"{seed}.onnx", conv_model(seed=seed)) for seed in (1, 2))
    other = job(tmp_path, "other.onnx", conv_model(out=16))
    kernels = KernelDigests()
    assert with_same_kernels({0: head, 1: base, 2: other}, kernels) == {1: 0}
    narrow = msgspec.structs.replace(base, target=TargetConfig(name="cpu", threads=2))
    assert with_same_kernels({0: head, 1: narrow}, kernels) == {}
    elsewhere = msgspec.structs.replace(base, path="other.onnx")
    assert with_same_kernels({0: head, 1: elsewhere}, kernels) == {}


def test_both_sides_have_the_tasks_of_the_one_that_was_opened(tmp_path: Path) -> None:
    jobs = [job(tmp_path, f"{seed}.onnx", conv_model(seed=seed)) for seed in (1, 2)]
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        head, base = compiler.tasks(jobs)
        assert head == base
        assert not isinstance(head, ModelError)
        assert head
        assert len(compiler._children._kept) == 1


def test_a_model_whose_tasks_are_known_is_not_opened(tmp_path: Path) -> None:
    jobs = [job(tmp_path, f"{seed}.onnx", conv_model(seed=seed)) for seed in (1, 2)]
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        tasks = [make_tuning_task("conv")]
        assert compiler.kernels(jobs)[0] == compiler.kernels(jobs)[1] != ""
        assert compiler.tasks(jobs, {0: tasks, 1: tasks}) == [tasks, tasks]
        assert compiler._requests._count == 0
        found = make_build("k", tasks=(make_task("dense", 1.0),))
        built = BuildJob(model=jobs[0], records={}, sources={}, directory=tmp_path)
        lost = compiler._taken.held(built, found)
        assert "its kernels are not those of an earlier run" in (lost.error or "")


def test_each_side_is_asked_where_the_first_has_no_tasks(tmp_path: Path) -> None:
    broken = conv_model()
    broken.graph.node[0].op_type = "NoSuchOperator"
    jobs = [job(tmp_path, name, broken) for name in ("a.onnx", "b.onnx")]
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        assert all(isinstance(each, ModelError) for each in compiler.tasks(jobs))
        assert compiler._requests._count == 2


def test_a_build_with_other_kernels_than_its_list_has_is_none(tmp_path: Path) -> None:
    built = BuildJob(
        model=job(tmp_path, "m.onnx", conv_model()), records={}, sources={}, directory=tmp_path
    )
    found = make_build("k", tasks=(make_task("conv", 1.0),))
    lists = TakenLists()
    assert lists.held(built, found) is found
    lists.add(built.model, ModelError("not listed"), "the other side")
    assert lists.held(built, found) is found
    lists.add(built.model, [make_tuning_task("conv")], "the other side")
    lists.add(built.model, [make_tuning_task("other")], "the other side")
    whole = msgspec.structs.replace(found, how=HowBuilt())
    lost = lists.held(built, whole)
    assert lost.crashed
    assert "its kernels are not those of the other side" in (lost.error or "")


# A build that is wrong with channels last is made again with channels first.

OTHER_LAYOUT_CPU = TargetConfig(name="cpu")
FINE, WRONG = make_build("fine"), make_build("wrong", error="computes other numbers")


def other_layout_job(target: TargetConfig = OTHER_LAYOUT_CPU) -> BuildJob:
    model = ModelJob(file=Path("m"), path="m", shapes={}, target=target)
    return BuildJob(model=model, records={}, sources={}, directory=Path("d"))


class Builder:
    def __init__(self, build: Build) -> None:
        self.build, self.layouts = build, list[str]()

    def __call__(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.layouts += [each.model.target.layout for each in jobs]
        return [self.build for _ in jobs]


def test_a_wrong_build_is_made_again_with_channels_first_and_says_so() -> None:
    builder = Builder(make_build("again"))
    one, other = in_other_layout([other_layout_job(), other_layout_job()], [FINE, WRONG], builder)
    assert builder.layouts == ["nchw"]
    assert (one, other.key, other.error) == (FINE, "again", None)
    assert other.without_channels_last == "computes other numbers"


def test_a_build_that_is_wrong_in_both_layouts_says_what_was_wrong_first() -> None:
    builder = Builder(make_build("again", error="so does this one"))
    assert in_other_layout([other_layout_job()], [WRONG], builder) == [WRONG]


@pytest.mark.parametrize(
    ("build", "target"),
    [
        (FINE, OTHER_LAYOUT_CPU),
        (unbuilt("no operator Odd"), OTHER_LAYOUT_CPU),
        (msgspec.structs.replace(WRONG, crashed=True), OTHER_LAYOUT_CPU),
        (WRONG, msgspec.structs.replace(OTHER_LAYOUT_CPU, layout="nhwc")),
        (WRONG, TargetConfig(name="gpu", kind="cuda", arch="sm_80")),
    ],
    ids=["right", "refused", "died", "told", "gpu"],
)
def test_nothing_else_is_made_again(build: Build, target: TargetConfig) -> None:
    """What is refused was tried in both layouts when it was imported."""
    builder = Builder(FINE)
    assert in_other_layout([other_layout_job(target)], [build], builder) == [build]
    assert not builder.layouts


def test_what_is_right_in_the_other_layout_alone_is_not_tuned_and_says_what_to_set() -> None:
    model = other_layout_job().model
    assert (refusal_of_tuning(model, None), refusal_of_tuning(model, FINE)) == ("", "")
    assert refusal_of_tuning(model, WRONG) == "computes other numbers"
    other = msgspec.structs.replace(FINE, without_channels_last="computes other numbers")
    assert "layout: nchw" in refusal_of_tuning(model, other)
