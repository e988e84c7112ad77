import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.models.inexact import quantized_model, row_norm, unfusable_model
from tests.support.prepared_models import prepared_model
from tests.support.small_onnx import conv_model, model_of, one_node_model, save, typed
from tunegate.errors import NotOfferedError
from tunegate.models.reference import onnx_runtime
from tunegate.models.reference.comparison import arrays_in, kind
from tunegate.models.reference.model_precision import ModelPrecision, precision_of, save_float16
from tunegate.models.reference.session import NO_OPTIMIZATION, ReferenceSession, write_optimized


def two_outputs() -> onnx.ModelProto:
    """A model that gives x + x, and x times a constant that must be folded."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["sum"]),
        helper.make_node("Mul", ["two", "two"], ["four"]),
        helper.make_node("Mul", ["x", "four"], ["product"]),
    ]
    two = np.array([2], np.float32)
    return model_of(nodes, {"x": [3]}, {"sum": [3], "product": [3]}, {"two": two})


FEED = {"x": np.array([1.0, 2.0, 3.0], "float32")}


def test_constants_are_folded_and_the_numbers_stay(tmp_path: Path) -> None:
    write_optimized(save(two_outputs(), tmp_path / "m.onnx"), tmp_path / "optimized.onnx")
    kinds = [node.op_type for node in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert sorted(kinds) == ["Add", "Mul"]
    optimized = ReferenceSession(tmp_path / "optimized.onnx").run(FEED)
    assert [output.tolist() for output in optimized] == [[2.0, 4.0, 6.0], [4.0, 8.0, 12.0]]


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_only_a_true_layer_norm_is_optimized(kind: str, keepdims: int, tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((16, 16)).astype("float32")
    found, expected = optimized_and_written(row_norm(kind, keepdims), values, tmp_path)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def optimized_and_written(model: onnx.ModelProto, x: Any, directory: Path) -> list[Any]:
    """Returns the outputs of both models, without ONNX Runtime's own optimizations."""
    file, optimized = save(model, directory / "m.onnx"), directory / "optimized.onnx"
    write_optimized(file, optimized)
    both = [ReferenceSession(each, level=NO_OPTIMIZATION) for each in (optimized, file)]
    return [session.run({"x": x})[0] for session in both]


def written(nodes: list[onnx.NodeProto], constants: Mapping[str, Any]) -> onnx.ModelProto:
    """Operators between an image x and y."""
    return model_of(nodes, {"x": [2, 8, 8]}, {"y": None}, constants)


ONE = np.float32(1)
BROKEN_BY_FUSIONS = {
    "zeros around a MaxPool win where all is negative": written(
        [
            helper.make_node("Pad", ["x", "pads"], ["padded"]),
            helper.make_node("MaxPool", ["padded"], ["y"], kernel_shape=[3]),
        ],
        {"pads": np.array([0, 0, 1, 0, 0, 1])},
    ),
    "the one that is divided has one axis more": written(
        [
            helper.make_node("Div", ["one", "x"], ["inverse"]),
            helper.make_node("Mul", ["inverse", "w"], ["y"]),
        ],
        {"one": np.ones((1, 1, 1, 1), "float32"), "w": np.ones((8, 8), "float32")},
    ),
    "a product with 1 that is a quotient": written(
        [
            helper.make_node("Identity", ["x"], ["same"]),
            helper.make_node("Div", ["one", "one"], ["folded"]),
            helper.make_node("Mul", ["same", "folded"], ["product"]),
            helper.make_node("Add", ["product", "zero"], ["y"]),
        ],
        {"one": ONE, "zero": np.float32(0)},
    ),
}


@pytest.mark.parametrize("model", BROKEN_BY_FUSIONS.values(), ids=BROKEN_BY_FUSIONS.keys())
def test_what_a_compiler_gets_is_what_is_written(model: onnx.ModelProto, tmp_path: Path) -> None:
    """ONNX Runtime's own optimizations give other numbers, another rank, or fail."""
    values = -1 - np.random.default_rng(0).random((2, 8, 8), "float32")
    found, expected = optimized_and_written(model, values, tmp_path)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_is_no_model_raises_what_onnx_runtime_raises(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"no model")
    with pytest.raises(Exception, match=r"m\.onnx"):
        write_optimized(tmp_path / "m.onnx", tmp_path / "o.onnx")


_PROGRAM = """
import sys
from tunegate.models.reference.onnx_runtime import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.get_inputs()[0].name)
"""


_CHOOSES = """
import os, sys
os.chdir(sys.argv[2])
from tunegate.models.reference.onnx_runtime import onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.get_session_options().enable_profiling)
"""


def test_a_model_does_not_choose_the_settings_of_its_session(tmp_path: Path) -> None:
    """Its metadata would, where the job's environment says so."""
    model = one_node_model("Relu")
    chosen = model.metadata_props.add()
    chosen.key, chosen.value = "ort_config", '{"session_options": {"enable_profiling": 1}}'
    command = [sys.executable, "-c", _CHOOSES, str(save(model, tmp_path / "m.onnx")), str(tmp_path)]
    variables = {**os.environ, "ORT_LOAD_CONFIG_FROM_MODEL": "1"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_nothing_is_kept_to_be_told_to_its_maker(tmp_path: Path) -> None:
    model = save(one_node_model("Relu"), tmp_path / "m.onnx")
    home = tmp_path / "home"
    home.mkdir()
    variables = {**os.environ, "HOME": str(home), "ORT_DISABLE_TELEMETRY": "0"}
    command = [sys.executable, "-c", _PROGRAM, str(model)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "x\n"
    assert list(home.rglob("*")) == []


def test_sums_of_int8_are_right_without_vnni() -> None:
    """Two products of 255 and 127 are more than an int16 holds."""
    model = model_of(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        {"x": typed(TensorProto.UINT8, [4, 64])},
        {"y": typed(TensorProto.INT32, [4, 16])},
        {"w": np.full((64, 16), 127, np.int8)},
    )
    feed = {"x": np.full((4, 64), 255, np.uint8)}
    for options in (onnx_runtime.exact_options(), onnx_runtime.timed_options(threads=1)):
        session = onnx_runtime.onnxruntime.InferenceSession(model.SerializeToString(), options)
        assert np.all(session.run(None, feed)[0] == 64 * 255 * 127)


MAPS = [{"dog": 0.25, "cat": 0.75}, {"cat": 1.0}]


def lists(value: Any) -> dict[str, list[Any]]:
    return {part.place: part.array.tolist() for part in arrays_in(value)}


@pytest.mark.parametrize(
    ("value", "arrays"),
    [
        (np.array([1.0]), {"": [1.0]}),
        (np.zeros((0, 3)), {"": []}),
        (2.5, {"": 2.5}),
        (None, {"(absent)": []}),
        ([], {"(0 long)": []}),
        ([np.ones(1), None], {"(2 long)": [], "[0]": [1.0], "[1] (absent)": []}),
        ({2: 0.5, 1: 0.25}, {"(1 maps) keys": ["0: 1", "0: 2"], "(1 maps) values": [0.25, 0.5]}),
        (
            MAPS,
            {
                "(2 maps) keys": ["0: 'cat'", "0: 'dog'", "1: 'cat'"],
                "(2 maps) values": [0.75, 0.25, 1.0],
            },
        ),
    ],
)
def test_every_output_is_some_arrays(value: Any, arrays: dict[str, list[Any]]) -> None:
    assert lists(value) == arrays


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (np.zeros((2, 3), "float32"), ((2, 3), "float32")),
        (np.array(["a"], dtype=object), ((1,), "object")),
        (MAPS, ((), "sequence(map)")),
        ([np.zeros(1, "int64")], ((), "sequence(int64)")),
        ([np.zeros(1, "int64"), None], ((), "sequence")),
        ([], ((), "sequence")),
        ({}, ((), "map")),
        (None, ((), "optional")),
    ],
)
def test_an_output_says_what_it_is(value: Any, named: tuple[tuple[int, ...], str]) -> None:
    assert kind(value) == named


def test_a_model_whose_fusions_fail_runs_without_them_and_says_so(tmp_path: Path) -> None:
    file = save(unfusable_model(), tmp_path / "m.onnx")
    x = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8)
    session = onnx_runtime.FallingBack(file, onnx_runtime.exact_options)
    (found,) = session.run({"x": x})
    assert found.shape == (1, 3, 13, 13)
    assert session.opened.note.startswith(
        "ONNX Runtime's own optimizations fail on this model (Exception during initialization: pads"
    )
    np.testing.assert_array_equal(ReferenceSession(file).run({"x": x})[0], found)
    with pytest.raises(Exception, match="Invalid rank"):
        session.run({"x": x[0]})


def test_what_does_not_load_unoptimized_either_is_the_models_own_fault(tmp_path: Path) -> None:
    model = unfusable_model()
    model.graph.node[0].op_type = "Unknown"
    with pytest.raises(Exception, match="Unknown"):
        onnx_runtime.FallingBack(save(model, tmp_path / "m.onnx"), onnx_runtime.exact_options)


def test_a_model_whose_basic_fusions_fail_is_compiled_as_it_is_written(tmp_path: Path) -> None:
    prepared = prepared_model(unfusable_model(), tmp_path, x=(1, 3, 8, 8))
    assert [node.op_type for node in onnx.load(prepared.optimized).graph.node] == ["Pad", "MaxPool"]


def test_a_static_model_that_is_refused_is_not_said_to_lack_static_shapes(tmp_path: Path) -> None:
    model = one_node_model("Relu")
    model.graph.node.append(helper.make_node("Reshape", ["x", "nowhere"], ["z"]))
    prepared = prepared_model(model, tmp_path, x=(4, 4))
    assert prepared.unfixable.startswith("m.onnx: ONNX Runtime does not load it (")


# How exact a model asks to be computed follows from its weights and its operators.


def test_the_noise_of_the_reference_is_bounded() -> None:
    floats, steps = ModelPrecision(), precision_of(quantized_model().graph)
    assert floats.allowed_error("float32", 0.002) == 0.004
    assert floats.allowed_error("float32", 1.0) == 0.01
    assert steps.allowed_error("float32", 0.02) == 0.04
    assert steps.allowed_error("uint8", 1.0) == 0.05


# Models converted to float16.


def test_weights_are_halves_and_what_goes_in_and_out_is_as_before(tmp_path: Path) -> None:
    model = prepared_model(conv_model(), tmp_path)
    save_float16(model, tmp_path / "half.onnx")
    rng = np.random.default_rng(1)
    feed = {each.name: rng.random(each.shape, np.float32) for each in model.inputs}
    (wanted,) = ReferenceSession(model.original).run(feed)
    (found,) = ReferenceSession(tmp_path / "half.onnx").run(feed)
    assert found.dtype == np.float32
    assert 0 < float(np.abs(found - wanted).max() / np.abs(wanted).max()) < 0.01


def test_a_model_without_weights_is_not_offered(tmp_path: Path) -> None:
    with pytest.raises(NotOfferedError, match="no weights in float32"):
        save_float16(prepared_model(one_node_model("Relu"), tmp_path), tmp_path / "half.onnx")
