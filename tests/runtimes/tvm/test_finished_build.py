from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import onnx
import pytest

from tests.support.measured_cells import make_build, make_job, make_model, make_task
from tests.support.present import present
from tests.support.small_onnx import conv_model, save
from tests.support.tuning_records import make_key, make_shape
from tests.support.tuning_tasks import make_task as make_tuning_task
from tunegate.artifacts.builds import Build, NumericCheck, WrongKernel, unbuilt
from tunegate.artifacts.candidates import LAUNCH
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError, UnsupportedModelError
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compile_requests import KernelDigests, TakenLists, with_same_kernels
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.finished_build import (
    CompileFailures,
    DeadBuilds,
    finish_build,
    in_other_layout,
    refusal_of_build,
    refusal_of_tuning,
    refused_builds,
)
from tunegate.system.processes.child import ChildDiedError
from tunegate.tune.compiler_protocol import Built, BuiltFunction, Checked, Mended
from tunegate.tune.protocol import Failed
from tunegate_cache.format.how_built import HowBuilt
from tunegate_cache.format.records import Toolchain

JOB = make_job(make_model(Path("/m.onnx")), Path("/out/builds/head"))
FUNCTION = BuiltFunction(
    key=make_key(),
    name="conv",
    function="conv2d",
    weight=2,
    source="search",
    rid="r",
    ms=1.5,
    verified=False,
)
REPLY = Built(
    key="k", reference="ref", functions=(FUNCTION,), size_bytes=9, seconds=3.0, dropped=("dense",)
)

WRONG_KERNEL = WrongKernel(
    key=make_key(),
    shape=make_shape(),
    toolchain=Toolchain(tvm="1", ffi="1"),
    name="conv",
    template="t",
    decisions=(),
    max_absolute=0.1,
    max_relative=0.2,
)
RIGHT = NumericCheck(passed=True, max_absolute=0.0, max_relative=0.0, tolerance=0.1)
WRONG = msgspec.structs.replace(RIGHT, passed=False, detail="off by 3")


def test_a_build_says_what_it_is_made_of() -> None:
    build = finish_build(JOB, REPLY, [Checked(RIGHT)])
    assert (build.key, build.directory, build.error) == ("k", "head", None)
    assert (build.size_bytes, build.seconds, build.dropped) == (9, 3.0, ("dense",))
    (task,) = build.tasks
    assert (task.name, task.weight, task.source, task.ms) == ("conv", 2, "search", 1.5)
    assert (task.rid, task.verified, task.key) == ("r", False, make_key())
    assert build.check == RIGHT


def test_a_build_that_computes_other_numbers_is_an_error_with_its_check() -> None:
    build = finish_build(JOB, REPLY, [Checked(WRONG)])
    assert build.error == "m.onnx: the compiled model computes other numbers: off by 3."
    assert build.check == WRONG


def test_a_build_that_no_device_here_can_run_is_not_checked() -> None:
    build = finish_build(JOB, REPLY, [Checked()])
    assert (build.check, build.error) == (None, None)


@pytest.mark.parametrize(
    ("answer", "said", "crashed"),
    [
        (Failed(model=True, reason="no such axis"), "does not run (no such axis)", False),
        (Failed(model=True, reason="no memory", memory=True), "does not run (no memory)", True),
        (Failed(model=True, reason="its timer died", died=True), "(its timer died)", True),
        (ChildDiedError("was killed by SIGSEGV"), "was killed by SIGSEGV when it was run", True),
    ],
)
def test_a_build_that_does_not_run_is_an_error(
    answer: Failed | ChildDiedError, said: str, *, crashed: bool
) -> None:
    build = finish_build(JOB, REPLY, [answer])
    assert build.check is None
    assert said in present(build.error)
    assert build.crashed == crashed


def test_a_mended_build_is_the_one_that_ships() -> None:
    mended = msgspec.structs.replace(REPLY, key="mended")
    answer = Mended(built=mended, check=RIGHT, wrong=(WRONG_KERNEL,))
    build = finish_build(JOB, REPLY, [Checked(WRONG), answer])
    assert (build.key, build.error, build.check) == ("mended", None, RIGHT)
    assert build.wrong_kernels == (WRONG_KERNEL,)


@pytest.mark.parametrize(
    ("answer", "said", "crashed"),
    [
        (Mended(), "off by 3.", False),
        (Mended(reason="no kernel does"), "off by 3. No kernel does.", False),
        (Mended(reason="it took too long", is_late=True), "off by 3. It took too long.", True),
        (ChildDiedError("was killed"), "The search for the kernel that does was killed.", True),
    ],
)
def test_a_build_that_cannot_be_mended_says_why(
    answer: Mended | ChildDiedError, said: str, *, crashed: bool
) -> None:
    """Time that ran out says as little of the model as a crash."""
    build = finish_build(JOB, REPLY, [Checked(WRONG), answer])
    assert present(build.error).endswith(said)
    assert (build.crashed, build.check) == (crashed, WRONG)


def test_only_what_was_not_built_or_computes_other_numbers_is_a_refusal() -> None:
    """A build that only does not run here may run on another machine."""
    died = ChildDiedError("was killed")
    assert refusal_of_build(finish_build(JOB, REPLY, [Checked(RIGHT)])) == ""
    assert refusal_of_build(finish_build(JOB, REPLY, [Checked(WRONG), Mended()])).endswith(
        "off by 3."
    )
    assert refusal_of_build(finish_build(JOB, REPLY, [died])) == ""
    found = refusal_of_build(unbuilt("the compiler was killed", crashed=True))
    assert found == "the compiler was killed"


def test_what_died_when_it_was_tried_is_no_refusal_of_the_model() -> None:
    """A base that lost a build so is no baseline for a head that has it."""
    tried = {"died": unbuilt("killed", crashed=True), "refused": unbuilt("no operator")}
    assert refused_builds({**tried, "fine": finish_build(JOB, REPLY, [Checked(RIGHT)])}) == tried


# A build that would end as another one did is not made.

DIED = unbuilt("m: the compiler failed (CUDA error 700) on this model", crashed=True)
REFUSED = unbuilt("m: TVM does not offer one launch: it is too large.")


def job(file: str = "base/m", path: str = "m", **changes: object) -> BuildJob:
    model = make_model(Path(file), path=path, target=TargetConfig(name="gpu"))
    return make_job(model, Path(file, "out"), **changes)


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


LOG = Path("compiler.log")


def test_a_fault_of_the_model_is_its_error() -> None:
    found = CompileFailures(LOG).of("m.onnx", Failed("m.onnx: no model", model=True))
    assert type(found) is ModelError
    refused = CompileFailures(LOG).of("m.onnx", Failed("m.onnx: no", model=True, compiler=True))
    assert isinstance(refused, UnsupportedModelError)


def test_a_fault_of_the_configuration_or_the_machine_is_none_of_the_models() -> None:
    with pytest.raises(ConfigError, match="bad"):
        CompileFailures(LOG).of("m.onnx", Failed("bad", model=False, configuration=True))
    with pytest.raises(EnvironmentUnfitError, match="bad"):
        CompileFailures(LOG).of("m.onnx", Failed("bad", model=False))


CPU = TargetConfig(name="cpu", threads=1)


def saved_model(directory: Path, name: str, model: onnx.ModelProto, **fields: object) -> ModelJob:
    return make_model(save(model, directory / name), **fields)


def test_one_side_is_opened_where_weights_alone_differ(tmp_path: Path) -> None:
    head, base = (saved_model(tmp_path, f"{seed}.onnx", conv_model(seed=seed)) for seed in (1, 2))
    other = saved_model(tmp_path, "other.onnx", conv_model(out=16))
    kernels = KernelDigests()
    assert with_same_kernels({0: head, 1: base, 2: other}, kernels) == {1: 0}
    narrow = msgspec.structs.replace(base, target=TargetConfig(name="cpu", threads=2))
    assert with_same_kernels({0: head, 1: narrow}, kernels) == {}
    elsewhere = msgspec.structs.replace(base, path="other.onnx")
    assert with_same_kernels({0: head, 1: elsewhere}, kernels) == {}


def test_both_sides_have_the_tasks_of_the_one_that_was_opened(tmp_path: Path) -> None:
    jobs = [saved_model(tmp_path, f"{seed}.onnx", conv_model(seed=seed)) for seed in (1, 2)]
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        head, base = compiler.tasks(jobs)
        assert head == base
        assert not isinstance(head, ModelError)
        assert head
        assert len(compiler._children._kept) == 1


def test_a_model_whose_tasks_are_known_is_not_opened(tmp_path: Path) -> None:
    jobs = [saved_model(tmp_path, f"{seed}.onnx", conv_model(seed=seed)) for seed in (1, 2)]
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        tasks = [make_tuning_task("conv")]
        assert compiler.kernels(jobs)[0] == compiler.kernels(jobs)[1] != ""
        assert compiler.tasks(jobs, {0: tasks, 1: tasks}) == [tasks, tasks]
        assert compiler._requests._count == 0
        found = make_build("k", tasks=(make_task("dense", 1.0),))
        built = BuildJob(model=jobs[0], records={}, sources={}, directory=tmp_path)
        lost = compiler._taken.require_same_tasks(built, found)
        assert "its kernels are not those of an earlier run" in (lost.error or "")


def test_each_side_is_asked_where_the_first_has_no_tasks(tmp_path: Path) -> None:
    broken = conv_model()
    broken.graph.node[0].op_type = "NoSuchOperator"
    jobs = [saved_model(tmp_path, name, broken) for name in ("a.onnx", "b.onnx")]
    with closing(MetaScheduleCompiler(tmp_path / "compiler", seed=1)) as compiler:
        assert all(isinstance(each, ModelError) for each in compiler.tasks(jobs))
        assert compiler._requests._count == 2


def test_a_build_with_other_kernels_than_its_list_has_is_none(tmp_path: Path) -> None:
    built = make_job(saved_model(tmp_path, "m.onnx", conv_model()), tmp_path)
    found = make_build("k", tasks=(make_task("conv", 1.0),))
    lists = TakenLists()
    assert lists.require_same_tasks(built, found) is found
    lists.add(built.model, ModelError("not listed"), "the other side")
    assert lists.require_same_tasks(built, found) is found
    lists.add(built.model, [make_tuning_task("conv")], "the other side")
    lists.add(built.model, [make_tuning_task("other")], "the other side")
    lost = lists.require_same_tasks(built, msgspec.structs.replace(found, how=HowBuilt()))
    assert lost.crashed
    assert "its kernels are not those of the other side" in (lost.error or "")


# A build that is wrong with channels last is made again with channels first.

UNCHOSEN = TargetConfig(name="cpu")
FINE, WRONG_BUILD = make_build("fine"), make_build("wrong", error="computes other numbers")


def other_layout_job(target: TargetConfig = UNCHOSEN) -> BuildJob:
    return make_job(make_model(target=target), Path("d"))


class Builder:
    def __init__(self, build: Build) -> None:
        self.build, self.layouts = build, list[str]()

    def __call__(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.layouts += [each.model.target.layout for each in jobs]
        return [self.build for _ in jobs]


def test_a_wrong_build_is_made_again_with_channels_first_and_says_so() -> None:
    builder = Builder(make_build("again"))
    one, other = in_other_layout(
        [other_layout_job(), other_layout_job()], [FINE, WRONG_BUILD], builder
    )
    assert builder.layouts == ["nchw"]
    assert (one, other.key, other.error) == (FINE, "again", None)
    assert other.without_channels_last == "computes other numbers"


def test_a_build_that_is_wrong_in_both_layouts_says_what_was_wrong_first() -> None:
    builder = Builder(make_build("again", error="so does this one"))
    assert in_other_layout([other_layout_job()], [WRONG_BUILD], builder) == [WRONG_BUILD]


@pytest.mark.parametrize(
    ("build", "target"),
    [
        (FINE, UNCHOSEN),
        (unbuilt("no operator Odd"), UNCHOSEN),
        (msgspec.structs.replace(WRONG_BUILD, crashed=True), UNCHOSEN),
        (WRONG_BUILD, msgspec.structs.replace(UNCHOSEN, layout="nhwc")),
        (WRONG_BUILD, TargetConfig(name="gpu", kind="cuda", arch="sm_80")),
    ],
    ids=["right", "refused", "died", "told", "gpu"],
)
def test_nothing_else_is_made_again(build: Build, target: TargetConfig) -> None:
    """A refused build was tried in both layouts when it was imported."""
    builder = Builder(FINE)
    assert in_other_layout([other_layout_job(target)], [build], builder) == [build]
    assert not builder.layouts


def test_what_is_right_in_the_other_layout_alone_is_not_tuned_and_says_what_to_set() -> None:
    model = other_layout_job().model
    assert (refusal_of_tuning(model, None), refusal_of_tuning(model, FINE)) == ("", "")
    assert refusal_of_tuning(model, WRONG_BUILD) == "computes other numbers"
    other = msgspec.structs.replace(FINE, without_channels_last="computes other numbers")
    assert "layout: nchw" in refusal_of_tuning(model, other)
