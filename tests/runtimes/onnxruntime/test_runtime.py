from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper

from tests.support.models.inexact import quantized
from tests.support.models.transformer import transformer
from tests.support.models.unusual import LOOP, model
from tests.support.small_onnx import chain_model, conv_model, one_node_model, save
from tunegate.config import TargetConfig
from tunegate.runtimes.builder import Refused, WrittenBuild
from tunegate.runtimes.loading import median_times
from tunegate.runtimes.onnxruntime import operator_profile
from tunegate.runtimes.onnxruntime.runtime import MODEL, RUNTIME, open_model_session
from tunegate.system.output.artifact_file import ArtifactFile


def test_a_model_is_shipped_as_it_is_or_in_int8() -> None:
    found = dict(RUNTIME.variants(TargetConfig(name="cpu")))
    assert found == {
        "": {},
        "int8": {"precision": "int8", "quantization": "static"},
        "int8.dynamic": {"precision": "int8"},
    }


def test_a_bound_inference_computes_what_a_run_does(tmp_path: Path) -> None:
    save(one_node_model("Relu"), tmp_path / "m.onnx")
    artifact = ArtifactFile(runtime="onnxruntime", file="m.onnx", inputs=(), outputs=(), threads=1)
    loaded = RUNTIME.load(tmp_path, artifact)
    (node,) = open_model_session(tmp_path / "m.onnx", 1).get_inputs()
    feed = {node.name: -np.ones(node.shape, "float32")}
    (run,), bound = loaded.run(feed), loaded.bound(feed)()
    assert isinstance(bound, list)
    assert (run == bound[0]).all()
    assert not run.any()
    assert list(median_times(loaded, feed, 2)) == ["odd"]


def test_a_session_has_the_threads_of_the_artifact_and_all_optimizations(tmp_path: Path) -> None:
    session = open_model_session(save(one_node_model("Relu"), tmp_path / "m.onnx"), 2)
    options = session.get_session_options()
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert options.graph_optimization_level.name == "ORT_ENABLE_ALL"
    assert session.get_providers() == ["CPUExecutionProvider"]


# Models with matrix products of int8, written by the child that builds them.


def reply(root: Path, model: onnx.ModelProto, samples: tuple[int, ...]) -> WrittenBuild | Refused:
    build = (RUNTIME.name, "int8.dynamic", {"precision": "int8"})
    return quantized(root, model, build, samples)


def test_a_quantized_model_says_its_error_against_float32(tmp_path: Path) -> None:
    written = reply(tmp_path, chain_model(layers=2, width=32), samples=(1, 2, 3))
    assert isinstance(written, WrittenBuild), written
    assert written.sampled is not None
    assert all(0 < each < 0.1 for each in written.sampled.relative)
    nodes = onnx.load(tmp_path / "artifact" / MODEL).graph.node
    assert [node.op_type for node in nodes].count("MatMulInteger") == 2


def test_nothing_is_written_beside_the_model_of_the_user(tmp_path: Path) -> None:
    reply(tmp_path, chain_model(layers=1, width=8), samples=(1,))
    assert [each.name for each in (tmp_path / "models").iterdir()] == ["m.onnx"]


def test_a_quantized_model_that_is_asked_for_its_check_does_not_pass(tmp_path: Path) -> None:
    written = reply(tmp_path, chain_model(layers=1, width=32), samples=())
    assert isinstance(written, WrittenBuild)
    assert written.check is not None
    assert not written.check.passed


@pytest.mark.parametrize("samples", [(), (1, 2)])
def test_a_model_without_products_is_refused(tmp_path: Path, samples: tuple[int, ...]) -> None:
    refused = reply(tmp_path, conv_model(), samples)
    assert isinstance(refused, Refused)
    assert refused.reason == (
        "models/m.onnx: ONNX Runtime does not offer int8: "
        "no matrix product has constant weights to quantize."
    )


NODES = [
    helper.make_node("ReorderInput", ["x"], ["token_0"], name="ReorderInput"),
    helper.make_node("Conv", ["token_0"], ["token_1"], name="relu1_nchwc"),
    helper.make_node("ReorderOutput", ["token_1"], ["r1"], name="ReorderOutput_token_76"),
    helper.make_node("Cast", ["y"], ["y_cast"], name="InsertedCast_y"),
    helper.make_node("Cast", ["y_cast"], ["y_back"], name="InsertedCast_y_back"),
]


def name_of(name: str, operator: str) -> str:
    return {"relu1_nchwc": "conv1"}.get(name, "") if operator == "Conv" else ""


def nodes(*more: NodeProto) -> operator_profile.InsertedNodes:
    return operator_profile.InsertedNodes([*NODES, *more], name_of)


def test_a_circle_ends() -> None:
    assert nodes(helper.make_node("Cast", ["a"], ["a"], name="loop")).layer_of("loop") == ""


def event(name: str, ts: int, dur: int, tid: int = 1) -> operator_profile._Event:
    return operator_profile._Event(cat="Node", name=name, dur=dur, ts=ts, tid=tid)


def test_a_loop_has_the_time_that_its_body_leaves() -> None:
    events = [
        event("body", 10, 30),
        event("inner", 12, 8),
        event("body", 50, 40),
        event("loop", 0, 100),
        event("next", 100, 5),
        event("elsewhere", 20, 7, tid=2),
    ]
    assert [(each.name, own) for each, own in operator_profile._own_times(events)] == [
        ("loop", 30),
        ("body", 22),
        ("inner", 8),
        ("body", 40),
        ("next", 5),
        ("elsewhere", 7),
    ]


def test_the_parts_of_an_inference_add_up_to_no_more_than_the_whole(tmp_path: Path) -> None:
    proto = model(LOOP)
    proto.graph.node[2].name = "loop"
    (body,) = proto.graph.node[2].attribute
    for node in body.g.node:
        node.name = f"body_{node.op_type}"
    file = save(proto, tmp_path / "m.onnx")
    found = operator_profile.profiled_ms(
        file, {"x": np.ones(4, np.float32)}, 3, partial(open_model_session, file, 1)
    )
    assert set(found) == {"loop", "body_Sin", "body_Identity"}


@pytest.mark.parametrize("proto", [conv_model(), transformer(sequence=8, width=32, layers=1)])
def test_every_time_is_under_a_name_of_the_model(proto: onnx.ModelProto, tmp_path: Path) -> None:
    """ONNX Runtime inserts nodes that no exporter wrote where layouts are blocked, and names those
    that it fuses as it likes."""
    for number, node in enumerate(proto.graph.node):
        node.name = f"layer{number}/{node.op_type}"
    file = save(proto, tmp_path / "m.onnx")
    (given,) = proto.graph.input
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    found = operator_profile.profiled_ms(
        file, {given.name: np.ones(shape, np.float32)}, 2, partial(open_model_session, file, 1)
    )
    assert found
    assert set(found) <= {node.name for node in proto.graph.node}
    products = {node.name for node in proto.graph.node if node.op_type in ("Conv", "MatMul")}
    assert products <= set(found)
