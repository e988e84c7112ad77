import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.models.inexact import row_norm
from tests.support.small_onnx import matmul_model, one_node_model, save
from tunegate.artifacts.builds import SampledErrors
from tunegate.artifacts.inputs import Files, InputRule, Uniform
from tunegate.models.reference import error_samples as case_files
from tunegate.models.reference.beside_base import lines_beside_base
from tunegate.models.reference.comparison import DidNotRun, compared
from tunegate.models.reference.error_samples import CaseFiles, sampled_errors
from tunegate.models.reference.onnx_runtime import error_line
from tunegate.models.reference.session import LEVELS, NO_OPTIMIZATION, ReferenceSession
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

X = ArtifactTensor("x", (1, 4), "float32")


def one_operator(folder: Path, operator: str, inputs: tuple[str, ...] = ("x",)) -> Path:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in ("x", "y")]
    node = helper.make_node(operator, inputs, ["y"])
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opset = [helper.make_opsetid("", 13)]
    return save(helper.make_model(graph, opset_imports=opset, ir_version=8), folder / "m.onnx")


def sampled(file: Path, change: Any, x: ArtifactTensor = X) -> SampledErrors | DidNotRun:
    session = ReferenceSession(file)
    return sampled_errors(
        lambda feed: [change(each) for each in session.run(feed)], file, [x], ["y"], range(5)
    )


def given(folder: Path, *values: list[float]) -> ArtifactTensor:
    files = [folder / f"{case}.npy" for case in range(len(values))]
    for file, value in zip(files, values, strict=True):
        np.save(file, np.array([value], "float32"))
    return ArtifactTensor("x", (1, 4), "float32", InputRule(Files(tuple(map(str, files)))))


def test_each_input_has_an_error_of_its_own(tmp_path: Path) -> None:
    found = sampled(one_operator(tmp_path, "Neg"), lambda y: y * np.float32(1.01))
    assert isinstance(found, SampledErrors)
    assert found.relative == pytest.approx([0.01] * 5, rel=1e-3)
    assert found.agrees == (True,) * 5
    assert found.saturated == ()
    assert found.telling == (0, 1, 2, 3, 4)
    assert (found.largest_of, found.disagrees) == ("y", "")
    upside_down = sampled(one_operator(tmp_path, "Neg"), lambda y: -y)
    assert isinstance(upside_down, SampledErrors)
    assert upside_down.disagrees == "y"


def test_the_error_is_told_beside_the_model_as_it_is_written(tmp_path: Path) -> None:
    """ONNX Runtime takes it for a norm of rows, which it is not."""
    file = save(row_norm("layer", keepdims=0), tmp_path / "m.onnx")
    x = ArtifactTensor("x", (16, 16), "float32")
    for level, is_right in ((NO_OPTIMIZATION, True), (LEVELS[-1], False)):
        session = ReferenceSession(file, level=level)
        found = sampled_errors(session.run, file, [x], ["y"], range(3))
        assert isinstance(found, SampledErrors)
        assert (max(found.relative) < 1e-6) == is_right


def test_outputs_that_are_always_the_same_or_0_and_1_tell_no_error(tmp_path: Path) -> None:
    always_0 = one_operator(tmp_path, "Sub", ("x", "x"))
    assert sampled(always_0, lambda y: y) == SampledErrors(saturated=("y",), inputs=5)


def test_inputs_on_which_an_output_is_at_its_bounds_count_for_nothing(tmp_path: Path) -> None:
    """One element of thirty-six is where the operator is not flat."""
    model = one_operator(tmp_path, "HardSigmoid")
    wide = ArtifactTensor("x", (1, 4), "float32", InputRule(Uniform(-90.0, 90.0)))
    session = ReferenceSession(model)
    found = sampled_errors(session.run, model, [wide], ["y"], range(40))
    assert isinstance(found, SampledErrors)
    assert found.inputs == 40
    assert len(found.telling) == len(found.relative) < 40
    assert 0 < len(found.relative) < 20
    assert [each.output for each in found.mostly_saturated] == ["y"]


def test_an_output_that_is_nan_on_both_sides_tells_no_error(tmp_path: Path) -> None:
    model = one_operator(tmp_path, "Log")
    below_0 = ArtifactTensor("x", (1, 4), "float32", InputRule(Uniform(-2.0, -1.0)))
    session = ReferenceSession(model)
    found = sampled_errors(session.run, model, [below_0], ["y"], range(5))
    assert found == SampledErrors(saturated=("y",), inputs=5)


def test_a_nan_is_no_error_of_some_size(tmp_path: Path) -> None:
    found = sampled(one_operator(tmp_path, "Neg"), lambda y: y * np.float32("nan"))
    assert isinstance(found, DidNotRun)


def test_all_cases_are_run_also_where_the_budget_needs_fewer(tmp_path: Path) -> None:
    cases = given(tmp_path, *([float(n), 1.0, 2.0, 3.0] for n in range(9)))
    found = sampled(one_operator(tmp_path, "Neg"), lambda y: y, cases)
    assert isinstance(found, SampledErrors)
    assert found.inputs == 9


def test_an_output_that_is_largest_in_one_place_has_nothing_to_agree_on(tmp_path: Path) -> None:
    model = one_operator(tmp_path, "Neg")
    first = [[n / 10, 1.0, 2.0, 3.0] for n in range(3)]
    found = sampled(model, lambda y: y, given(tmp_path, *first))
    assert isinstance(found, SampledErrors)
    assert (found.agrees, found.one_place, found.saturated) == ((), ("y",), ())
    assert len(found.relative) == 3
    found = sampled(model, lambda y: y, given(tmp_path, *first, [3.0, 2.0, 1.0, 0.0]))
    assert isinstance(found, SampledErrors)
    assert (found.agrees, found.one_place) == ((True,) * 4, ())


GATHER = "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Non-zero status code while running Gather."
LOADING = """[ONNXRuntimeError] : 1 : FAIL : Load model from /p/fixed.onnx failed:Node () Op (If)
[ShapeInferenceError] Incompatible dimensions"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError("in a kernel\nno memory\n"), "no memory"),
        (RuntimeError(), "RuntimeError"),
        (KeyError(1), "1"),
        (RuntimeError(GATHER), "Non-zero status code while running Gather."),
        (RuntimeError(LOADING), "Node () Op (If) [ShapeInferenceError] Incompatible dimensions"),
        (RuntimeError("word " * 100 + "cause"), "word " * 19 + "word … " + "word " * 38 + "cause"),
    ],
)
def test_an_error_is_told_in_one_line(error: Exception, line: str) -> None:
    assert error_line(error) == line


CASE_FILES_X = ArtifactTensor(
    "x", (2,), "float32", InputRule(Files(("/a", "/b"), ("a.npy", "b.npy")))
)
ONES = np.ones(2, np.float32)


def test_a_case_has_the_arrays_of_both_and_what_they_are(tmp_path: Path) -> None:
    kept = CaseFiles(tmp_path / "cases", [CASE_FILES_X], ["../y", "labels"])
    maps = [{"cat": 0.25}]
    for case in range(3):
        kept.add(case, {"x": ONES * case}, [ONES, maps], [ONES * 2, maps])
    described = json.loads((tmp_path / "cases" / "cases.json").read_text())
    assert described["inputs"] == ["x"]
    assert described["outputs"] == ["../y", "labels (1 maps) keys", "labels (1 maps) values"]
    assert described["cases"][2] == {"file": "case-0002.npz", "given": {"x": "a.npy"}}
    with np.load(tmp_path / "cases" / "case-0002.npz", allow_pickle=False) as case_file:
        found = {name: case_file[name].tolist() for name in case_file}
    assert found == {
        "input_0": [2.0, 2.0],
        "reference_0": [2.0, 2.0],
        "reference_1": ["0: 'cat'"],
        "reference_2": [0.25],
        "candidate_0": [1.0, 1.0],
        "candidate_1": ["0: 'cat'"],
        "candidate_2": [0.25],
    }


def test_cases_that_take_too_much_room_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(case_files, "MAX_CASES_BYTES", 50)
    kept = CaseFiles(tmp_path, [CASE_FILES_X], ["y"])
    for case in range(3):
        kept.add(case, {"x": ONES}, [ONES], [ONES])
    assert [each.name for each in sorted(tmp_path.glob("*.npz"))] == [
        "case-0000.npz",
        "case-0001.npz",
    ]


# What consumers of a model's outputs want to know of a change.

INPUTS = [ArtifactTensor("x", (4, 64), "float32")]


def lines(tmp_path: Path, base: onnx.ModelProto, head: onnx.ModelProto) -> tuple[str, ...]:
    was, now = save(base, tmp_path / "base.onnx"), save(head, tmp_path / "head.onnx")
    return lines_beside_base(was, now, INPUTS, 1)


def quantized_product(accuracy_level: int) -> onnx.ModelProto:
    """A product with weights of four bits, whose level decides how exact its sums are."""
    random = np.random.default_rng(0)
    packed = random.integers(0, 256, (32, 2, 16), np.uint8)
    scales = random.random(64).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "scales"],
        ["y"],
        domain="com.microsoft",
        K=64,
        N=32,
        bits=4,
        block_size=32,
        accuracy_level=accuracy_level,
    )
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 32])],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "scales")],
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def test_other_numbers_with_the_same_weights_are_told(tmp_path: Path) -> None:
    (line,) = lines(tmp_path, quantized_product(0), quantized_product(4))
    assert line.startswith("with the same weights its output y is off by ")


def test_a_change_that_is_rounding_alone_is_not_told(tmp_path: Path) -> None:
    base = matmul_model(rows=4, inner=64)
    head = matmul_model(rows=4, inner=64)
    head.graph.node[0].name = "another"
    assert lines(tmp_path, base, head) == ()


def test_new_weights_are_no_news(tmp_path: Path) -> None:
    base, head = (matmul_model(rows=4, inner=64, seed=seed) for seed in (1, 2))
    assert lines(tmp_path, base, head) == ()


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "line"),
    [
        ("z", TensorProto.FLOAT, [4, 16], "its outputs are z; the base's are y"),
        ("y", TensorProto.DOUBLE, [4, 16], "its output y is float64; the base's is float32"),
        ("y", TensorProto.FLOAT, [4, 4, 4], "its output y is of rank 3; the base's is of rank 2"),
    ],
)
def test_another_name_type_or_rank_of_an_output_is_told(
    name: str, dtype: int, shape: list[int], line: str, tmp_path: Path
) -> None:
    base, head = matmul_model(rows=4, inner=64), matmul_model(rows=4, inner=64)
    head.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, dtype, shape))
    assert lines(tmp_path, base, head) == (line,)


def test_random_outputs_are_told_as_such_and_not_as_other_numbers(tmp_path: Path) -> None:
    base, head = one_node_model("RandomNormalLike"), one_node_model("RandomNormalLike")
    head.graph.node[0].attribute.append(helper.make_attribute("mean", 3.0))
    said = "its outputs are random: ONNX Runtime gives others each time"
    was, now = save(base, tmp_path / "base.onnx"), save(head, tmp_path / "head.onnx")
    x, y = (ArtifactTensor(name, (4, 4), "float32") for name in "xy")
    assert lines_beside_base(was, now, [x], 1) == (said,)
    artifact = ArtifactFile(runtime="any", file="m", inputs=(x,), outputs=(y,), threads=1)
    check = compared(lambda feed: [feed["x"]], now, artifact, (1,))
    assert (check.passed, check.detail) == (False, said)  # type: ignore[union-attr]


def test_a_base_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "base.onnx").write_bytes(b"nonsense")
    head = save(matmul_model(rows=4, inner=64), tmp_path / "head.onnx")
    assert lines_beside_base(tmp_path / "base.onnx", head, INPUTS, 1) == ()
