from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, cast

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.small_onnx import save
from tunegate.artifacts.builds import Build
from tunegate.compiler.build.mended_build import check_numbers
from tunegate.config import TargetConfig
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.loading import bound_inference
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.system.output.artifact_file import ArtifactTensor
from tunegate.tune.compiler_protocol import CheckArtifact, Checked


def two_outputs() -> onnx.ModelProto:
    shape = [2, 8]
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Sigmoid", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["z"])]
    graph = helper.make_graph(
        nodes,
        "two",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape), value("z", TensorProto.FLOAT, shape)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


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
            CheckArtifact(
                directory=str(directory), reference=str(reference), kind="llvm", seeds=seeds
            )
        )
        assert isinstance(reply, Checked)
        assert reply.check is not None
        return reply.check.detail

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
        cast("Any", bound_inference(directory, seed)())[0].numpy() for seed in (1, 1, 2)
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
