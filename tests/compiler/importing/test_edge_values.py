"""Compiled operators give ONNX Runtime's numbers where operators are easily told apart: at zero, at
bounds and ties, of infinity and NaN. One build has all of these operators."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

from tests.cuda_stand_in.fixtures import WhatCuda
from tests.cuda_stand_in.programs import given_by
from tests.support.operator_models import outputs_of
from tests.support.small_onnx import save
from tests.support.worker_requests import build_request
from tunegate.compiler.compile import handle_request
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import TvmArtifact
from tunegate.config import TargetConfig
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import Built

CPU = TargetConfig(name="cpu", threads=1, cpu="x86-64-v3")
CUDA = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
Node = tuple[str, list[Any], dict[str, Any]]
EDGES = np.array(
    [0, -0.0, 0.5, -0.5, 1, -1, 1.5, 2.5, -2.5, 3, -3, 6, np.nan, np.inf, -np.inf], np.float32
)
ONE, OTHER = (each.ravel() for each in np.meshgrid(EDGES, EDGES))
ROWS = np.array([[-np.inf] * 4, [3, 1, 3, 1], [np.inf, 1, np.inf, 2]], np.float32)
LEAST = np.array([[-128, -128], [127, 127]], np.int8)
IMAGE = np.where(np.arange(32).reshape(1, 1, 8, 4) < 16, -np.inf, 1).astype(np.float32)
PHOTO = np.random.default_rng(0).standard_normal((1, 2, 8, 7)).astype(np.float32)
WEIGHTS = np.arange(-18, 18, dtype=np.int8).reshape(3, 2, 2, 3)
BITS = np.array([True, True, False])
CUBE = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
PLACES = np.array([[[0, -1], [2, 1]], [[-1, 0], [1, -2]]])
FAR = np.random.default_rng(0).standard_normal((2, 2, 2, 6, 5)).astype(np.float32) + 1000
LOW, HIGH = np.array(2, np.float32), np.array(1, np.float32)


def of_edges() -> list[Node]:
    names = "Relu Elu Selu Celu HardSigmoid HardSwish LeakyRelu Sign Softplus ThresholdedRelu Abs"
    nodes: list[Node] = [(name, [EDGES], {}) for name in (*names.split(), "Floor", "Ceil", "Round")]
    nodes += [("ThresholdedRelu", [EDGES], {"alpha": alpha}) for alpha in (0.5, 0.0, -1.0)]
    nodes += [("Pow", [EDGES, np.array(each, np.float32)], {}) for each in (0.5, -0.5, 1.5, -1.5)]
    nodes += [(name, [ONE, OTHER], {}) for name in ("Max", "Min", "Equal", "Less")]
    for bounds in ([LOW, HIGH], [LOW], [None, HIGH], []):
        nodes.append(("Clip", [EDGES, *bounds], {}))
        whole = [None if each is None else each.astype(np.int8) for each in bounds]
        nodes.append(("Clip", [np.arange(-9, 9, dtype=np.int8), *whole], {}))
    for name in ("ArgMax", "ArgMin"):
        for last in (0, 1):
            nodes.append((name, [ROWS], {"axis": 1, "select_last_index": last}))
        nodes.append((name, [LEAST], {"axis": 1}))
    for name in ("SumSquare", "L1", "L2", "LogSum", "LogSumExp", "Max"):
        nodes.append((f"Reduce{name}", [ROWS[1:2]], {"noop_with_empty_axes": 1}))
    nodes += [
        ("Hardmax", [ROWS], {}),
        ("Equal", [BITS, ~BITS], {}),
        ("Sign", [np.array([0, 3], np.uint8)], {}),
    ]
    nodes.append(("MaxPool", [IMAGE], {"kernel_shape": [2, 2]}))
    for axis in (0, 1, -1):
        nodes.append(("GatherElements", [CUBE, PLACES], {"axis": axis}))
        updates = CUBE[:2, :2, :2] + 100
        nodes += [
            ("ScatterElements", [CUBE, PLACES, updates], {"axis": axis, "reduction": way})
            for way in ("none", "add")
        ]
    return nodes


def of_windows() -> list[Node]:
    """Poolings whose pads are to be found, and whose last window is cut."""
    ways: list[dict[str, Any]] = [
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "SAME_UPPER", "ceil_mode": 1},
        {"ceil_mode": 1},
        {"ceil_mode": 1, "pads": [1, 0, 1, 2]},
    ]
    window: dict[str, Any] = {"kernel_shape": [2, 3], "strides": [3, 2]}
    names = ("MaxPool", "AveragePool", "LpPool")
    quantized = [(20 * PHOTO + 100).astype(np.uint8), WEIGHTS, np.array(77, np.uint8)]
    products: list[Node] = [("ConvInteger", quantized, window | way) for way in ways[:1]]
    return products + [(name, [PHOTO], window | way) for name in names for way in ways]


def of_norms(opset: int) -> list[tuple[Node, tuple[int, ...]]]:
    """Normalizations of numbers far from zero, with the axes of `FAR` in two groups."""
    photo, one, zero = FAR.reshape(2, 4, 6, 5), np.ones(4, np.float32), np.zeros(4, np.float32)
    numbers = [each[: 4 if opset >= 21 else 2] for each in (one, zero)]
    return [
        (("GroupNormalization", [photo, *numbers], {"num_groups": 2}), (2, 3, 4)),
        (("InstanceNormalization", [photo, one, zero], {}), (3, 4)),
        (("LayerNormalization", [photo, np.ones(5, np.float32)], {}), (4,)),
        (("MeanVarianceNormalization", [photo], {}), (0, 3, 4)),
    ]


def model_of(nodes: list[Node], opset: int = 20) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """One model of all the nodes, and its inputs; bounds and exponents are weights."""
    feed: dict[str, Any] = {}
    weights, made = [], []
    for at, (operator, operands, attributes) in enumerate(nodes):
        names = ["" if each is None else f"x{at}_{n}" for n, each in enumerate(operands)]
        made.append(helper.make_node(operator, names, [f"y{at}"], **attributes))
        for name, value in zip(names, operands, strict=True):
            if operator in {"Clip", "Pow"} and name and value.ndim == 0:
                weights.append(numpy_helper.from_array(value, name))
            elif name:
                feed[name] = value
    outputs = [onnx.ValueInfoProto(name=f"y{at}") for at in range(len(nodes))]
    graph = helper.make_graph(
        made, "g", [declared(*each) for each in feed.items()], outputs, weights
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    shapes = [declared(f"y{at}", value) for at, value in enumerate(outputs_of(model, feed))]
    del graph.output[:]
    graph.output.extend(shapes)
    return helper.make_model(graph, opset_imports=model.opset_import, ir_version=10), feed


def declared(name: str, value: Any) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, kind, value.shape)


def compiled(model: onnx.ModelProto, directory: Path, target: TargetConfig = CPU) -> TvmArtifact:
    load_intrinsics(target.kind)
    (directory / "scratch").mkdir()
    file = save(model, directory / "m.onnx")
    built = handle_request(build_request(file, directory, target=target))
    assert isinstance(built, Built), built
    return TvmArtifact(directory / "build", ArtifactFile.read(directory / "build"))


def wrong_at_edges(directory: str, target: TargetConfig) -> list[str]:
    """Returns a line for each operator that computes other numbers than ONNX Runtime."""
    nodes = of_edges()
    if target == CPU:  # on a GPU both begin with the last finite number
        nodes += [("ReduceMax", [ROWS[:1]], {}), ("ReduceMin", [-ROWS[:1]], {})]
        nodes += of_windows()
        nodes += [(name, [EDGES.astype("float16")], {"alpha": 2.0}) for name in ("Elu", "Selu")]
        nodes.append(("LRN", [PHOTO.astype("float16")], {"size": 3}))
    model, feed = model_of(nodes)
    ours, theirs = compiled(model, Path(directory), target).run(feed), outputs_of(model, feed)
    return [
        f"{operator} {attributes}: {got}, not {wanted}"
        for (operator, _, attributes), got, wanted in zip(nodes, ours, theirs, strict=True)
        if got.dtype != wanted.dtype or not np.allclose(got, wanted, 1e-4, 1e-6, equal_nan=True)
    ]


def reached_outside(directory: str, target: TargetConfig) -> list[float]:
    """Numbers that are in no tensor, for indices far outside, and divisors that are 0."""
    data, rows = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((1, 4), np.int64)
    updates = np.full((1, 4), 50, np.float32)
    nodes: list[Node] = [
        ("Gather", [data, rows], {}),
        ("GatherElements", [data, rows], {}),
        ("GatherND", [data, rows.reshape(2, 2)], {}),
        ("ScatterElements", [data, rows, updates], {}),
        ("ScatterElements", [data, rows[:, :2], updates[:, :2]], {"axis": 1}),
        ("ScatterND", [data, rows.reshape(2, 2), updates[0, :2]], {}),
        *((name, [rows + 1, rows + 1], {}) for name in ("Div", "Mod")),
    ]
    model, feed = model_of(nodes)
    build, found = compiled(model, Path(directory), target), set[float]()
    for far in (0, 3, -4, 2**40, -(2**63)):
        given: Mapping[str, Any] = {
            name: np.full_like(value, far) if value.dtype == np.int64 else value
            for name, value in feed.items()
        }
        found.update(*(output.ravel().tolist() for output in build.run(given)))
    return sorted(found - {*range(12), 50})


def regions_outside(directory: str, target: TargetConfig) -> list[float]:
    """Numbers that are in no image, for regions of images that there are not."""
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> m (float[3,1,2,2] x, float[1,1] n)'
        " => (float[1,1,1,1] y, float[1,1,1,1] z) { small = Constant<value_float = 0.001>()"
        " much = Abs(n) image = Mul(much, small) box = Constant<value = float[1,4]{0, 0, 0, 0}>()"
        " regions = Concat<axis = 1>(image, box) y = MaxRoiPool<pooled_shape = [1, 1]>(x, regions)"
        " one = Constant<value_ints = [1]>() flat = Reshape(image, one) whole = Cast<to = 7>(flat)"
        " z = RoiAlign<spatial_scale = 0.5>(x, box, whole) }"
    )
    data = np.arange(12, dtype=np.float32).reshape(3, 1, 2, 2)
    build, found = compiled(model, Path(directory), target), set[float]()
    for far in (0, 1500, 1e15, np.nan):
        given = {"x": data, "n": np.array([[far]], np.float32)}
        found.update(*(output.ravel().tolist() for output in build.run(given)))
    return sorted(found - {*range(12)})


def wrong_of_nothing(directory: str, target: TargetConfig) -> list[bool]:
    """Returns True for each output that differs: one is made of an empty tensor, one is empty."""
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> m (float[2,8] x) => (float[2,8] y, float[2,0] z)'
        "{ sizes = Constant<value_ints = [8, 0]>() a, b = Split<axis = 1>(x, sizes)"
        " c = Sigmoid(a) y = Concat<axis = 1>(c, b) z = Relu(b) }"
    )
    feed = {"x": np.linspace(-3, 3, 16, dtype=np.float32).reshape(2, 8)}
    ours, theirs = compiled(model, Path(directory), target).run(feed), outputs_of(model, feed)
    return [True for got, wanted in zip(ours, theirs, strict=True) if not np.allclose(got, wanted)]


def test_what_is_compiled_gives_the_same_at_edges(tmp_path: Path) -> None:
    assert not wrong_at_edges(str(tmp_path), CPU)


@pytest.mark.parametrize("opset", [18, 21])
def test_a_norm_of_numbers_far_from_zero_keeps_their_deviation(opset: int, tmp_path: Path) -> None:
    """ONNX Runtime's own GroupNormalization does not: it subtracts two means."""
    norms = of_norms(opset)
    model, feed = model_of([node for node, _ in norms], opset)
    exact = FAR.astype(np.float64)
    for (node, axes), got in zip(norms, compiled(model, tmp_path).run(feed), strict=True):
        distance = exact - exact.mean(axes, keepdims=True)
        wanted = distance / np.sqrt(exact.var(axes, keepdims=True) + 1e-5)
        assert np.abs(got.reshape(wanted.shape) - wanted).max() < 2e-3, node[0]


def test_a_group_norm_of_a_function_counts_groups_by_the_functions_opset(tmp_path: Path) -> None:
    """Each set has its own shape of scales."""
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
    g (float[2, 4, 30] x, float[2] s, float[4] t) => (float[2, 4, 30] y, float[2, 4, 30] z) {
      y = own.old (x, s) z = GroupNormalization <num_groups = 2> (x, t, t)
    } <domain: "own", opset_import: ["": 18]>
    old (x, s) => (y) { y = GroupNormalization <num_groups = 2> (x, s, s) }"""
    rows = FAR.reshape(2, 2, 60)
    got = compiled(onnx.parser.parse_model(text), tmp_path).run(
        {"x": FAR.reshape(2, 4, 30), "s": np.ones(2, np.float32), "t": np.ones(4, np.float32)}
    )
    even = (rows - rows.mean(-1, keepdims=True)) / rows.std(-1, keepdims=True) + 1
    for each in got:
        assert np.abs(each.reshape(rows.shape) - even).max() < 2e-3


def test_small_results_of_softplus_and_mish_have_their_digits(tmp_path: Path) -> None:
    x = np.linspace(-40, 40, 161).astype(np.float32)
    model, feed = model_of([("Softplus", [x], {}), ("Mish", [x], {})])
    softplus = np.logaddexp(0, x.astype(np.float64))
    expected = (softplus, x * np.tanh(softplus))
    for got, wanted in zip(compiled(model, tmp_path).run(feed), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=0)


def test_a_number_that_is_not_equal_to_itself_is_not_one(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20]> m (float[15] x) => (float[15] y)'
        "<float[1] other = {7}> { is_number = Equal(x, x) y = Where(is_number, x, other) }"
    )
    (cleaned,) = compiled(model, tmp_path).run({"x": EDGES})
    assert cleaned.tolist() == np.where(np.isnan(EDGES), 7, EDGES).tolist()


def test_a_smallest_number_divided_by_minus_one_stops_no_processor(tmp_path: Path) -> None:
    """ONNX Runtime stops at most of these."""
    kinds = [kind for kind in (np.int8, np.int32, np.int64) for _ in range(2)]
    numbers, ones = [1, 100, -7, 8], [1, -1, 3, -2]
    nodes: list[Node] = [
        (name, [np.array(numbers, kind), np.array(ones, kind)], {})
        for name, kind in zip(["Div", "Mod"] * 3, kinds, strict=True)
    ]
    model, feed = model_of(nodes)
    for at, kind in enumerate(kinds):
        feed[f"x{at}_0"][0], feed[f"x{at}_1"][0] = np.iinfo(kind).min, -1
    outputs = [output.tolist() for output in compiled(model, tmp_path).run(feed)]
    for kind, quotient, rest in zip(kinds[::2], outputs[::2], outputs[1::2], strict=True):
        assert (quotient, rest) == ([np.iinfo(kind).min, -100, -2, -4], [0, 0, 2, 0])


def test_no_index_reads_or_writes_outside_of_a_tensor(tmp_path: Path) -> None:
    """ONNX Runtime stops with an error; a kernel takes the nearest element."""
    for reached in (reached_outside, regions_outside):
        (tmp_path / reached.__name__).mkdir()
        assert not reached(str(tmp_path / reached.__name__), CPU)


@pytest.mark.cuda_stand_in
@pytest.mark.timeout(900)
@pytest.mark.parametrize("wrong", ["wrong_at_edges", "wrong_of_nothing", "reached_outside"])
def test_what_is_compiled_for_a_gpu_is_no_other(
    cuda_stand_in: WhatCuda, tmp_path: Path, wrong: str
) -> None:
    """A maximum of CUDA's own loses NaN."""
    assert not given_by(cuda_stand_in(), __name__, f"{wrong}({str(tmp_path)!r}, m.CUDA)")
