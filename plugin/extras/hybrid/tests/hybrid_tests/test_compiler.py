"""A model is built in parts, and ships what is faster compiled; the rest stays where it was."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from tests.support.small_onnx import (
    chain_model,
    conv_model,
    one_node_model,
    parts_model,
    save,
)
from tests.support.tuning_records import make_record

from tunegate.artifacts.builds import Build
from tunegate.artifacts.tasks import TuningTask
from tunegate.config import TargetConfig
from tunegate.errors import ModelError, UnsupportedModelError
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.loading import load, operators_ms
from tunegate.runtimes.runtime import ExtendedCompiler
from tunegate.runtimes.tvm.compile_requests import opened_key
from tunegate.runtimes.tvm.runtime import RUNTIME as TVM
from tunegate.tune.protocol import ModelFile, Opened, OpenModels
from tunegate_hybrid.compiler import PartsBuilds, PartsCompiler, needless
from tunegate_hybrid.plan_file import PartsPlan
from tunegate_hybrid.runtime import RUNTIME
from tunegate_hybrid.searcher import handle_request

TARGET = TargetConfig(name="cpu", threads=1)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExtendedCompiler]:
    place = tmp_path_factory.mktemp("compiler")
    with extended(place) as compiler:
        yield compiler


@contextmanager
def extended(place: Path, targets: Collection[str] = (TARGET.name,)) -> Iterator[ExtendedCompiler]:
    whole = TVM.compiler(place / "whole", seed=1, limit_seconds=300.0)
    compiler = RUNTIME.extended(whole, targets, place / "parts", seed=1, limit_seconds=300.0)
    with closing(whole), closing(compiler):
        yield compiler


class InParts(NamedTuple):
    """A model with what was made of it: `whole` is the build without parts."""

    model: Path
    tasks: list[TuningTask]
    whole: Build
    build: Build
    directory: Path


@pytest.fixture(scope="module")
def built(compiler: ExtendedCompiler, tmp_path_factory: pytest.TempPathFactory) -> InParts:
    place = tmp_path_factory.mktemp("built")
    job = build_job(parts_model(), place)
    (tasks,) = compiler.tasks([job.model])
    assert not isinstance(tasks, ModelError)
    (whole,) = compiler.build([job])
    (build,) = compiler.builder.build([job])
    return InParts(job.model.file, list(tasks), whole, build, job.directory)


def build_job(model: onnx.ModelProto, place: Path) -> BuildJob:
    file = save(model, place / "m.onnx")
    job = ModelJob(file=file, path="m.onnx", shapes={}, target=TARGET)
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
    built: InParts, compiler: ExtendedCompiler, tmp_path: Path
) -> None:
    (other,) = compiler.builder.build([build_job(parts_model(seed=5), tmp_path)])
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
    compiler: ExtendedCompiler,
    tmp_path: Path,
    compiled: tuple[int, ...],
    parts: list[bool],
) -> None:
    """Node 24 is what the compiler lacks, and there is none beyond 49."""
    job = build_job(parts_model(seed=7), tmp_path)
    assert built.build.how is not None
    how = msgspec.structs.replace(built.build.how, compiled=compiled)
    job = msgspec.structs.replace(job, how=how)
    (build,) = compiler.builder.build([job])
    assert build.error is None
    assert build.check is not None
    assert build.check.passed
    assert [part.is_compiled for part in PartsPlan.read(tmp_path / "built").parts] == parts
    assert build.how is not None
    assert build.how.compiled == (compiled if parts == [True, False] else built.build.how.compiled)


def test_where_the_compiler_takes_it_whole_there_is_nothing_to_build(
    compiler: ExtendedCompiler, tmp_path: Path
) -> None:
    job = build_job(one_node_model("Relu"), tmp_path)
    (build,) = compiler.builder.build([job])
    assert build.is_needless
    assert "all or nothing" in str(build.error)
    compiler.tasks([job.model])
    (again,) = compiler.builder.build([job])
    assert again.is_needless
    (nothing,) = compiler.builder.build([build_job(one_node_model("Det"), tmp_path)])
    assert nothing.is_needless


def test_a_target_without_parts_is_as_it_is_without_this(
    built: InParts, compiler: ExtendedCompiler, tmp_path: Path
) -> None:
    """The list of its tasks has another digest where it is remembered."""
    job = build_job(parts_model(), tmp_path).model
    with extended(tmp_path, targets=()) as plain:
        (refused,) = plain.tasks([job])
        assert isinstance(refused, UnsupportedModelError)
        assert plain.kernels([job]) != compiler.kernels([job])


def tuned_job(place: Path) -> BuildJob:
    record = make_record()
    job = build_job(conv_model(), place)
    return msgspec.structs.replace(job, records={record.key: (record,)})


def test_what_is_held_against_its_parts_is_the_tuned_build_and_not_the_one_that_was_tried(
    tmp_path: Path,
) -> None:
    job = tuned_job(tmp_path)
    with extended(tmp_path) as compiler:
        assert isinstance(compiler, PartsCompiler)
        assert compiler.refused([job.model]) == [""]
        assert not compiler.parts.whole_at
        assert compiler.build([job])[0].error is None
        assert compiler.parts.whole_at == {opened_key(job.model): job.directory}


def test_parts_that_an_earlier_run_elected_are_built_without_the_whole(tmp_path: Path) -> None:
    """A model that is compiled whole, too, of which nothing else is built in this run."""
    job, parts = tuned_job(tmp_path), Asked(tmp_path, 1, 300.0)
    parts.without_parts.add(opened_key(job.model))
    parts.build([job])
    assert (parts.request(job, None, elected=True).whole, parts.elected) == ("", True)


class Asked(PartsBuilds):
    """Remembers how it is to build, and builds nothing."""

    elected: bool | None = None

    def _made(self, job: BuildJob, whole: Path | None, elected: bool) -> Build:
        assert whole is None
        self.elected = elected
        return needless(job)


def test_the_kernels_of_parts_are_searched_in(built: InParts, tmp_path: Path) -> None:
    """The child of the search opens the models of a run as the one that lists their tasks does."""
    opened = handle_request(
        OpenModels(
            models=(ModelFile(file=str(built.model), path="m.onnx", shapes={}),),
            target=TARGET,
            directory=str(tmp_path),
            seed=1,
        )
    )
    assert isinstance(opened, Opened)
    assert set(opened.workloads) == {task.key.workload for task in built.tasks}


def test_where_no_part_is_faster_that_is_said(compiler: ExtendedCompiler, tmp_path: Path) -> None:
    model = chain_model(layers=2, width=512)
    last = model.graph.node[-1]
    last.CopyFrom(helper.make_node("Binarizer", last.input[:1], last.output, domain="ai.onnx.ml"))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    (build,) = compiler.builder.build([build_job(model, tmp_path)])
    assert build.error == "m.onnx: no part of the model is faster under TVM."
    assert not build.is_needless


def test_of_what_is_slower_compiled_whole_the_pieces_that_are_faster_stay(
    compiler: ExtendedCompiler, tmp_path: Path
) -> None:
    job = build_job(slow_end_model(), tmp_path)
    (tasks,) = compiler.tasks([job.model])
    assert not isinstance(tasks, ModelError)
    records = {task.key: (make_record(key=task.key, template="", decisions=()),) for task in tasks}
    job = msgspec.structs.replace(job, records=records, directory=tmp_path / "whole")
    (whole,) = compiler.build([job])
    assert whole.error is None
    (build,) = compiler.builder.build([msgspec.structs.replace(job, directory=tmp_path / "parts")])
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
