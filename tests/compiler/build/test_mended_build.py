"""A kernel that computes other numbers gets its default schedule, and the others keep theirs."""

import random
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tvm import te

from tests.support.present import present
from tests.support.small_onnx import model_of, save
from tests.support.tuning_records import make_record
from tests.support.worker_requests import build_request
from tunegate.artifacts.builds import Build
from tunegate.compiler.build import build_model
from tunegate.compiler.build.functions import ModelFunction, functions_of
from tunegate.compiler.build.mended_build import check_numbers
from tunegate.compiler.compile import handle_request
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import slower_in_model
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.schedules import schedule_choice
from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.targets import tvm_target
from tunegate.compiler.versions import toolchain
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.loading import bound_inferences
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.system.output.artifact_file import ArtifactTensor
from tunegate.tune import compiler_protocol
from tunegate_cache.format.records import DeviceFingerprint, TuningRecord, WorkloadKey

CPU = TargetConfig(name="cpu", threads=1)
TARGET = tvm_target(CPU)
DEVICE = DeviceFingerprint(name="here", kind="cpu", units=1, memory_bytes=1)
LARGE = 2.0**20
"""Each number beside it is one of float32; a sum of 64 of them is not."""


def two_products() -> onnx.ModelProto:
    draw = np.random.default_rng(0)
    weights = [draw.standard_normal(shape).astype("float32") for shape in ((16, 32), (32, 8))]
    return model_of(
        [
            helper.make_node("MatMul", ["x", "w0"], ["h"], name="first"),
            helper.make_node("MatMul", ["h", "w1"], ["y"], name="second"),
        ],
        {"x": [4, 16]},
        {"y": [4, 8]},
        {f"w{n}": weight for n, weight in enumerate(weights)},
    )


def long_sums() -> onnx.ModelProto:
    """Sums of numbers that cancel from one to the next, and of what every other one has in
    common."""
    weights = np.where(np.arange(4096)[:, None] % 2, 1 - LARGE, 1 + LARGE).repeat(4, 1)
    mixed = np.eye(4) + 0.5
    return model_of(
        [
            helper.make_node("Exp", ["x"], ["positive"]),
            helper.make_node("Sign", ["positive"], ["ones"]),
            helper.make_node("MatMul", ["ones", "w0"], ["h"], name="first"),
            helper.make_node("MatMul", ["h", "w1"], ["y"], name="second"),
        ],
        {"x": [1, 4096]},
        {"y": [1, 4]},
        {f"w{n}": weight.astype("float32") for n, weight in enumerate((weights, mixed))},
    )


class Bench:
    """The model, a schedule for each kernel, and what a child answers. No clock takes a schedule
    away: they are settled."""

    def __init__(self, directory: Path, model: onnx.ModelProto | None = None) -> None:
        load_intrinsics("llvm")
        self.file = save(model or two_products(), directory / "m.onnx")
        prepared = prepare(self.file, shapes={}, into=directory / "p", path="m.onnx")
        module = import_in_layout(prepared, TARGET.target, "m.onnx", ("nchw",))
        self.functions = functions_of(module)
        self.request = build_request(
            self.file,
            directory,
            records={f.workload.digest: (record_of(f),) for f in self.functions},
            settled=tuple(sorted(f.workload.digest for f in self.functions)),
            scratch=str(directory),
        )

    def mended(self, limit_seconds: float = 60.0) -> compiler_protocol.Mended:
        built = handle_request(self.request)
        assert isinstance(built, compiler_protocol.Built)
        check = compiler_protocol.CheckArtifact(
            directory=self.request.directory, reference=built.reference, kind="llvm", seeds=(1, 2)
        )
        checked = handle_request(check)
        assert isinstance(checked, compiler_protocol.Checked)
        assert not present(checked.check).passed
        mended = handle_request(
            compiler_protocol.MendBuild(
                build=self.request, check=check, limit_seconds=limit_seconds
            )
        )
        assert isinstance(mended, compiler_protocol.Mended)
        return mended


def record_of(function: ModelFunction) -> TuningRecord:
    space = DesignSpace(function.workload, TARGET.target)
    (sampled,) = space.sample(1, random.Random(1))
    schedule = present(space.describe(sampled.trace))
    return make_record(
        key=WorkloadKey(function.workload.digest, TARGET.key),
        shape=function.workload.shape,
        template=schedule.template,
        decisions=schedule.decisions,
        toolchain=toolchain(),
    )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """The schedule of the first product makes another function of it."""
    replayed = schedule_choice.best_that_replays

    def replaying(function: ModelFunction, *rest: Any) -> tuple[Any, Any]:
        main, record = replayed(function, *rest)
        is_first = function.label == "first"
        return (twice(function) if is_first else main), record

    monkeypatch.setattr(schedule_choice, "best_that_replays", replaying)
    return Bench(tmp_path)


def twice(function: ModelFunction) -> Any:
    """A function of the same arguments that computes twice the product."""
    first, second, _ = (
        te.placeholder([int(n) for n in each.ty.shape], name=f"p{n}")
        for n, each in enumerate(function.workload.module["main"].params)
    )
    k = te.reduce_axis((0, first.shape[1]), "k")
    product = te.compute(
        (first.shape[0], second.shape[1]),
        lambda i, j: te.sum(first[i, k] * second[k, j] * 2.0, axis=k),
    )
    main = te.create_prim_func([first, second, product]).without_attr("global_symbol")
    return main.with_attr("tirx.noalias", True).with_attr(IS_SCHEDULED, True)


def test_the_kernel_that_computes_other_numbers_is_found_and_the_others_stay(bench: Bench) -> None:
    mended = bench.mended()
    assert present(mended.check).passed
    (wrong,) = mended.wrong
    assert wrong.name == "first"
    assert wrong.max_relative == pytest.approx(1.0, rel=1e-3)
    expected = {"first": False, "second": True}
    assert {f.name: bool(f.rid) for f in present(mended.built).functions} == expected


def test_a_schedule_that_was_too_slow_in_the_model_is_not_in_what_is_checked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slower(*libraries: Path, kernels: frozenset[str], **how: Any) -> frozenset[str]:
        slower_in_model(*libraries, kernels=kernels, **how)
        return kernels

    monkeypatch.setattr(build_model, "slower_in_model", slower)
    monkeypatch.setattr(build_model, "is_faster_whole", lambda *_, **__: False)
    transferred = {f.workload.digest: "transfer" for f in bench.functions}
    bench.request = msgspec.structs.replace(bench.request, sources=transferred, settled=())
    built = handle_request(bench.request)
    assert isinstance(built, compiler_protocol.Built)
    assert built.dropped == ("first", "second")
    check = compiler_protocol.CheckArtifact(
        directory=bench.request.directory, reference=built.reference, kind="llvm", seeds=(1, 2)
    )
    checked = handle_request(check)
    assert isinstance(checked, compiler_protocol.Checked)
    assert present(checked.check).passed


def test_no_more_time_is_spent_than_there_is(bench: Bench) -> None:
    mended = bench.mended(limit_seconds=0.0)
    assert (mended.built, mended.is_late) == (None, True)
    assert "within 0 s" in mended.reason


def test_a_schedule_that_rounds_away_what_its_neighbours_keep_is_found(tmp_path: Path) -> None:
    """It sums every eighth number by itself, so that what cancels meets only at the end."""
    bench = Bench(tmp_path, long_sums())
    first = max(bench.functions, key=lambda f: f.flops)
    record = msgspec.structs.replace(record_of(first), **strided_sums(first))
    bench.request = msgspec.structs.replace(
        bench.request, records={**bench.request.records, first.workload.digest: (record,)}
    )
    mended = bench.mended()
    (wrong,) = mended.wrong
    assert (wrong.key.workload, wrong.decisions) == (first.workload.digest, record.decisions)
    assert wrong.max_relative > 0.1
    kept = {f.key.workload for f in present(mended.built).functions if f.rid}
    assert kept == bench.request.records.keys() - {first.workload.digest}


def strided_sums(function: ModelFunction) -> dict[str, Any]:
    """Decisions that split a sum in parts of every eighth number: eight parts for each sum."""
    space = DesignSpace(function.workload, TARGET.target)
    for sampled in space.sample(96, random.Random(1)):
        found = space.describe(sampled.trace)
        parts = [list(each.shape) for each in sampled.mod["main"].body.block.alloc_buffers]
        has_eight = any(8 in shape and 512 not in shape for shape in parts)
        if found is not None and found.decisions[0][1] == (512, 8) and has_eight:
            return {"template": found.template, "decisions": found.decisions}
    raise AssertionError


def two_outputs() -> onnx.ModelProto:
    shape = [2, 8]
    nodes = [helper.make_node("Sigmoid", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["z"])]
    return model_of(nodes, {"x": shape}, {"y": shape, "z": shape})


def built(directory: Path, seed: int = 1) -> Build:
    target = TargetConfig(name="cpu", threads=1)
    file = save(two_outputs(), directory / "m.onnx")
    model = ModelJob(file=file, path="m.onnx", shapes={}, target=target)
    compiler = MetaScheduleCompiler(directory / "c", seed=seed)
    job = BuildJob(model=model, records={}, sources={}, directory=directory / "b")
    with closing(compiler):
        (build,) = compiler.build([job])
    return build


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Build]:
    """The build of seed 1, and the directory that it is in."""
    directory = tmp_path_factory.mktemp("first")
    return directory / "b", built(directory)


def equal_to_the_build_only_on(inputs_of: int) -> onnx.ModelProto:
    """Else its first output is off by one."""
    model = two_outputs()
    known = seeded_inputs([ArtifactTensor("x", (2, 8), "float32")], inputs_of)["x"]
    model.graph.initializer.append(numpy_helper.from_array(known, "known"))
    model.graph.node[0].output[0] = "right"
    node = helper.make_node
    model.graph.node.extend(
        [
            node("Equal", ["x", "known"], ["same"]),
            node("Not", ["same"], ["other"]),
            node("Cast", ["other"], ["error"], to=TensorProto.FLOAT),
            node("Add", ["right", "error"], ["y"]),
        ]
    )
    return model


def test_what_computes_right_on_one_seed_only_is_found_out(
    first: tuple[Path, Build], tmp_path: Path
) -> None:
    directory, build = first
    assert build.error is None
    reference = save(equal_to_the_build_only_on(1), tmp_path / "reference.onnx")

    def checked(*seeds: int) -> str:
        reply = check_numbers(
            compiler_protocol.CheckArtifact(
                directory=str(directory), reference=str(reference), kind="llvm", seeds=seeds
            )
        )
        assert isinstance(reply, compiler_protocol.Checked)
        return present(reply.check).detail

    assert checked(1) == ""
    assert "output y is off by" in checked(1, 2)


def test_the_seed_of_a_run_is_in_no_build(first: tuple[Path, Build], tmp_path: Path) -> None:
    directory, build = first
    second = built(tmp_path, seed=2)
    assert (build.key, build.tasks) == (second.key, second.tasks)
    files = [
        {file.name: file.read_bytes() for file in place.iterdir()}
        for place in (directory, tmp_path / "b")
    ]
    assert files[0] == files[1]


def test_a_compiled_model_is_timed_on_inputs_of_its_seed(first: tuple[Path, Build]) -> None:
    directory, _ = first
    one, again, other = (
        cast("Any", bound_inferences(directory, seed)[0]())[0].numpy() for seed in (1, 1, 2)
    )
    assert (one == again).all()
    assert not (one == other).any()


def test_every_output_has_errors_of_its_own_and_the_worst_are_the_builds(
    first: tuple[Path, Build],
) -> None:
    _, build = first
    assert build.check is not None
    assert build.check.passed
    assert [output.name for output in build.check.outputs] == ["y", "z"]
    worst = max(output.max_relative for output in build.check.outputs)
    assert build.check.max_relative == pytest.approx(worst)
    assert 0 <= worst <= build.check.tolerance
