"""A model is built in parts, and ships what is faster compiled; the rest stays where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from tests.support.small_onnx import chain_model, one_node_model, parts_model, save
from tests.support.tuning_records import make_record
from tunegate.artifacts.builds import Build
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.parts.plan_file import PartsPlan
from tunegate.errors import ModelError
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.hybrid.runtime import RUNTIME
from tunegate.runtimes.loading import load, operators_ms
from tunegate.runtimes.runtime import OpenCompiler
from tunegate.runtimes.tvm.runtime import RUNTIME as TVM

TARGET = TargetConfig(name="cpu", threads=1)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenCompiler]:
    compiler = TVM.compiler(tmp_path_factory.mktemp("compiler"), seed=1, limit_seconds=300.0)
    yield compiler
    compiler.close()


class InParts(NamedTuple):
    """A model with what was made of it: `whole` is the build without parts."""

    model: Path
    tasks: list[TuningTask]
    whole: Build
    build: Build
    directory: Path


@pytest.fixture(scope="module")
def built(compiler: OpenCompiler, tmp_path_factory: pytest.TempPathFactory) -> InParts:
    place = tmp_path_factory.mktemp("built")
    job = build_job(parts_model(), place)
    (tasks,) = compiler.tasks([job.model])
    assert not isinstance(tasks, ModelError)
    (whole,) = compiler.build([job])
    (build,) = RUNTIME.builder(compiler).build([job])
    return InParts(job.model.file, list(tasks), whole, build, job.directory)


def build_job(model: onnx.ModelProto, place: Path) -> BuildJob:
    file = save(model, place / "m.onnx")
    job = ModelJob(file=file, path="m.onnx", shapes={}, target=TARGET, in_parts=True)
    return BuildJob(model=job, records={}, sources={}, directory=place / "built")


def test_parts_with_the_same_kernel_share_a_task_and_the_whole_is_not_tried(
    built: InParts,
) -> None:
    (task,) = built.tasks
    assert task.uses[0].weight == 2
    assert "Binarizer" in str(built.whole.error)
    assert not built.whole.is_needless


def test_both_chains_are_compiled_and_the_operator_between_them_is_not(built: InParts) -> None:
    assert built.build.error is None
    assert built.build.check is not None
    assert built.build.check.passed
    plan = PartsPlan.read(built.directory)
    assert [part.is_compiled for part in plan.parts] == [True, False, True]
    assert [(task.key, task.weight) for task in built.build.tasks] == [(built.tasks[0].key, 2)]


def test_the_artifact_computes_what_the_model_does_again_and_again(built: InParts) -> None:
    artifact = load(built.directory)
    session = onnxruntime.InferenceSession(built.model, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(2)
    feeds = [{"x": random.standard_normal((1, 400_000)).astype(np.float32)} for _ in range(2)]
    found = [artifact.run(feed) for feed in (*feeds, feeds[0])]
    for feed, (output,) in zip((*feeds, feeds[0]), found, strict=True):
        np.testing.assert_allclose(output, session.run(None, feed)[0], rtol=1e-5)


def test_the_time_is_told_by_operators_of_both_kinds(built: InParts) -> None:
    times = operators_ms(built.directory, 3, seed=1)
    assert times["bits"] > 0
    assert times[built.build.tasks[0].name] > 0


def test_other_weights_are_cut_alike_with_another_key(
    built: InParts, compiler: OpenCompiler, tmp_path: Path
) -> None:
    (other,) = RUNTIME.builder(compiler).build([build_job(parts_model(seed=5), tmp_path)])
    assert other.error is None
    assert other.key != built.build.key
    assert [task.key for task in other.tasks] == [task.key for task in built.build.tasks]


@pytest.mark.parametrize(
    ("compiled", "parts"),
    [
        (tuple(range(8)), [True, False]),
        ((23, 24), [True, False, True]),
        ((1_000,), [True, False, True]),
    ],
)
def test_a_remembered_cut_is_followed_where_it_fits_and_else_measured(
    built: InParts,
    compiler: OpenCompiler,
    tmp_path: Path,
    compiled: tuple[int, ...],
    parts: list[bool],
) -> None:
    """Node 24 is what the compiler lacks, and there is none beyond 49."""
    job = build_job(parts_model(seed=7), tmp_path)
    assert built.build.how is not None
    how = msgspec.structs.replace(built.build.how, compiled=compiled)
    job = msgspec.structs.replace(job, how=how)
    (build,) = RUNTIME.builder(compiler).build([job])
    assert build.error is None
    assert build.check is not None
    assert build.check.passed
    assert [part.is_compiled for part in PartsPlan.read(tmp_path / "built").parts] == parts
    assert build.how is not None
    assert build.how.compiled == (compiled if parts == [True, False] else built.build.how.compiled)


def test_where_the_compiler_takes_it_whole_there_is_nothing_to_build(
    compiler: OpenCompiler, tmp_path: Path
) -> None:
    job = build_job(one_node_model("Relu"), tmp_path)
    (build,) = RUNTIME.builder(compiler).build([job])
    assert build.is_needless
    assert "all or nothing" in str(build.error)
    compiler.tasks([job.model])
    (again,) = RUNTIME.builder(compiler).build([job])
    assert again.is_needless
    (nothing,) = RUNTIME.builder(compiler).build([build_job(one_node_model("Det"), tmp_path)])
    assert nothing.is_needless


def test_where_no_part_is_faster_that_is_said(compiler: OpenCompiler, tmp_path: Path) -> None:
    model = chain_model(layers=2, width=512)
    last = model.graph.node[-1]
    last.CopyFrom(helper.make_node("Binarizer", last.input[:1], last.output, domain="ai.onnx.ml"))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    (build,) = RUNTIME.builder(compiler).build([build_job(model, tmp_path)])
    assert build.error == "m.onnx: no part of the model is faster under TVM."
    assert not build.is_needless


def test_of_what_is_slower_compiled_whole_the_pieces_that_are_faster_stay(
    compiler: OpenCompiler, tmp_path: Path
) -> None:
    job = build_job(slow_end_model(), tmp_path)
    (tasks,) = compiler.tasks([job.model])
    assert not isinstance(tasks, ModelError)
    records = {task.key: (make_record(key=task.key, template="", decisions=()),) for task in tasks}
    job = msgspec.structs.replace(job, records=records, directory=tmp_path / "whole")
    (whole,) = compiler.build([job])
    assert whole.error is None
    (build,) = RUNTIME.builder(compiler).build(
        [msgspec.structs.replace(job, directory=tmp_path / "parts")]
    )
    assert build.error is None
    plan = PartsPlan.read(tmp_path / "parts")
    assert [part.is_compiled for part in plan.parts] == [True, False]
    assert {task.key for task in build.tasks} < {task.key for task in tasks}


def slow_end_model() -> onnx.ModelProto:
    """A model of many maps, which are faster compiled, and a product that is not: 514 channels fill
    no register of any CPU."""
    model = parts_model(maps=24, size=200_000)
    kept = [node for node in model.graph.node if node.name != "bits"][:48]
    kept.append(helper.make_node("Reshape", [kept[-1].output[0], "shape"], ["square"]))
    kept.append(helper.make_node("MatMul", ["square", "w"], ["product"]))
    del model.graph.node[:], model.graph.output[:]
    model.graph.node.extend(kept)
    weight = np.random.default_rng(0).standard_normal((500, 514)).astype(np.float32)
    model.graph.initializer.extend(
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(np.array([400, 500]), "shape"),
        ]
    )
    model.graph.output.append(
        helper.make_tensor_value_info("product", onnx.TensorProto.FLOAT, [400, 514])
    )
    return model
