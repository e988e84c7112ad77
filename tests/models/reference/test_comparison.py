import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.models import inexact
from tests.support.models.inexact import row_norm
from tests.support.models.unusual import map_model
from tests.support.present import present
from tests.support.small_onnx import matmul_model, model_of, one_node_model, save, typed
from tunegate.artifacts.builds import NumericCheck, SampledErrors
from tunegate.artifacts.inputs import Files, InputRule, Uniform
from tunegate.models.reference import error_samples, tolerance
from tunegate.models.reference.beside_base import lines_beside_base
from tunegate.models.reference.comparison import DidNotRun, Reference, compare_outputs
from tunegate.models.reference.error_samples import (
    CaseFiles,
    TellingElements,
    agreement,
    sampled_errors,
)
from tunegate.models.reference.onnx_runtime import error_line, exact_options, onnxruntime
from tunegate.models.reference.session import LEVELS, NO_OPTIMIZATION, ReferenceSession
from tunegate.models.reference.tolerance import differs, errors
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

Run = Callable[[Mapping[str, Any]], Sequence[Any]]


def artifact_of(x: ArtifactTensor, *outputs: ArtifactTensor) -> ArtifactFile:
    return ArtifactFile(runtime="any", file="m.onnx", inputs=(x,), outputs=outputs, threads=1)


def compared(
    run: Run, model: Path, artifact: ArtifactFile, seeds: Sequence[int]
) -> NumericCheck | DidNotRun:
    return compare_outputs(run, partial(Reference, model, artifact.inputs, seeds), artifact)


@pytest.fixture
def found(tmp_path: Path) -> Callable[[Run], NumericCheck | DidNotRun]:
    """Returns a function that checks another one against a Relu."""
    model = save(one_node_model("Relu"), tmp_path / "m.onnx")
    tensors = [ArtifactTensor(name, shape(model), "float32") for name in ("x", "y")]
    artifact = artifact_of(*tensors)
    return lambda run: compared(run, model, artifact, (1, 2))


def shape(model: Path) -> tuple[int, ...]:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return tuple(session.get_inputs()[0].shape)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda feed: [np.maximum(feed["x"], 0) * 1.01], "output y is off by"),
        (lambda feed: [np.maximum(feed["x"], 0)[:0]], "output y is shape"),
        (lambda feed: [], "0 outputs instead of 1"),
        (lambda feed: [np.maximum(feed["x"], 0).astype("f8")], "y is float64 instead of float32"),
        (lambda feed: [np.maximum(feed["x"], 0).astype(">f4")], "y is >f4 instead of float32"),
        (lambda feed: [np.maximum(feed["x"], 0)[None]], "output y is shape (1, "),
        (lambda feed: [feed["x"] * np.nan], "not a number where one is expected"),
        (lambda feed: [[feed["x"]]], "output y is of another structure: (1 long), [0] instead of"),
        (lambda feed: [None], "output y is of another structure: (absent) instead of a tensor"),
    ],
)
def test_other_numbers_do_not(found: Callable[[Run], NumericCheck], run: Run, said: str) -> None:
    check = found(run)
    assert not check.passed
    assert said in check.detail


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (("z", (), "float32"), "its outputs are z instead of"),
        (("", (), "float32"), "float32 of rank 2, and its artifact says float32 of rank 0"),
        (("", (1, 1), "float64"), "float32 of rank 2, and its artifact says float64 of"),
    ],
)
def test_an_artifact_that_says_other_outputs_than_it_gives_does_not_pass(
    output: tuple[str, tuple[int, ...], str], said: str, tmp_path: Path
) -> None:
    file = save(one_node_model("Relu"), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    given, made = session.get_inputs()[0], session.get_outputs()[0]
    name, dims, dtype = output
    x = ArtifactTensor(given.name, tuple(given.shape), "float32")
    artifact = artifact_of(x, ArtifactTensor(name or made.name, dims, dtype))
    check = compared(lambda feed: session.run(None, dict(feed)), file, artifact, (1,))
    assert isinstance(check, NumericCheck)
    assert not check.passed
    assert said in check.detail


@pytest.mark.parametrize(
    ("last", "is_memory"), [("no axis", False), ("cudaErrorMemoryAllocation: out of memory", True)]
)
def test_what_does_not_run_is_told_by_its_last_line(
    found: Callable[[Run], DidNotRun], last: str, is_memory: bool
) -> None:
    def run(feed: Mapping[str, Any]) -> Sequence[Any]:
        raise RuntimeError(f"in a kernel\n{last}")

    assert found(run) == DidNotRun(last, memory=is_memory)


def test_maps_and_texts_are_compared_too(tmp_path: Path) -> None:
    file = save(map_model(), tmp_path / "m.onnx")
    other = onnxruntime.InferenceSession(save(map_model(1.01), tmp_path / "other.onnx"))
    outputs = (ArtifactTensor("label", (2,), "int64"), ArtifactTensor("maps", (), "sequence(map)"))
    artifact = artifact_of(ArtifactTensor("x", (2, 3), "float32"), *outputs)
    same = onnxruntime.InferenceSession(file)
    equal = compared(lambda feed: same.run(None, feed), file, artifact, (1,))
    wrong = compared(lambda feed: other.run(None, feed), file, artifact, (1,))
    assert isinstance(equal, NumericCheck)
    assert isinstance(wrong, NumericCheck)
    assert (equal.passed, wrong.passed) == (True, False)
    assert wrong.detail.startswith("output maps (2 maps) values is off by")
    assert [output.max_absolute > 0 for output in wrong.outputs] == [False, True]


def test_a_reference_that_does_not_run_is_told(tmp_path: Path) -> None:
    found = compared(lambda feed: [], tmp_path / "none.onnx", artifact_of(X), (1,))
    assert isinstance(found, DidNotRun)
    assert found.of_reference


def test_a_build_may_be_off_as_far_as_the_reference_is_from_itself(tmp_path: Path) -> None:
    check = beside(inexact.cancelling_model(1500.0), 1.004, tmp_path)
    assert check.passed
    assert check.reference_noise is not None
    assert 0.002 < check.tolerance <= 0.01


@pytest.mark.parametrize("offset", [0.0, 1500.0, 1e6])
def test_a_reference_full_of_noise_admits_no_wrong_numbers(tmp_path: Path, offset: float) -> None:
    check = beside(inexact.cancelling_model(offset), 1.05, tmp_path)
    assert not check.passed
    assert check.tolerance <= 0.01


def test_a_quantized_model_may_be_off_by_a_step_and_no_more(tmp_path: Path) -> None:
    """One step of 0.4 is 2% of the largest output, and the reference is off by as much."""
    assert beside(inexact.quantized_model(), 1.0, tmp_path, off=0.4).passed
    assert not beside(inexact.quantized_model(), 1.0, tmp_path, off=1.6).passed


@pytest.mark.parametrize(("off", "passes"), [(0.0, True), (0.6, False)])
def test_what_is_written_is_right_however_the_reference_optimizes(
    off: float, passes: bool, tmp_path: Path
) -> None:
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    check = beside(inexact.requantized_model(), 1.0, tmp_path, off=off, level=level)
    assert (check.passed, check.as_written) == (passes, passes)
    assert present(check.reference_noise) > 0.05


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_reference_is_the_model_as_it_is_written(kind: str, tmp_path: Path) -> None:
    """ONNX Runtime takes it for a norm of rows, which it is not; production would be wrong."""
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    right = beside(inexact.row_norm(kind, keepdims=0), 1.0, tmp_path, level=level)
    assert (right.passed, right.as_written) == (True, True)
    assert present(right.reference_noise) > 0.05
    wrong = beside(inexact.row_norm(kind, keepdims=0), 1.0, tmp_path)
    assert not wrong.passed
    assert "of the largest output" in wrong.detail


def beside(
    model: onnx.ModelProto,
    factor: float,
    directory: Path,
    off: float = 0.0,
    level: Any = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
) -> NumericCheck:
    """Checks the reference's own numbers times a factor."""
    file = save(model, directory / "m.onnx")
    options = exact_options()
    options.graph_optimization_level = level
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(file), options, providers=providers)
    tensors = [
        ArtifactTensor(each.name, tuple(each.shape), "float32")
        for each in (*session.get_inputs(), *session.get_outputs())
    ]
    artifact = artifact_of(*tensors)
    found = compared(
        lambda feed: [each * factor + off for each in session.run(None, dict(feed))],
        file,
        artifact,
        (1, 2),
    )
    assert isinstance(found, NumericCheck)
    return found


@pytest.mark.parametrize("name", ["BFLOAT16", "FLOAT8E4M3FN", "INT4"])
def test_outputs_of_types_that_numpy_lacks_are_compared_right(name: str, tmp_path: Path) -> None:
    number = onnx.TensorProto.DataType.Value(name)
    cast = onnx.helper.make_node("Cast", ["x"], ["y"], to=number)
    made = {"y": typed(number, [4, 4])}
    file = save(model_of([cast], {"x": [4, 4]}, made, opset=21), tmp_path / "m")
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    x, y = (ArtifactTensor(*each) for each in (("x", (4, 4), "float32"), ("y", (4, 4), str(dtype))))
    artifact = artifact_of(x, y)
    to_whole = np.rint if name == "INT4" else np.asarray
    runs: list[tuple[Run, str]] = [
        (lambda feed: [to_whole(feed["x"]).astype(dtype)], ""),
        (lambda feed: [feed["x"]], f"output y is float32 instead of {dtype}"),
        (lambda feed: [(to_whole(feed["x"]) * -2).astype(dtype)], "output y is off by"),
    ]
    for run, said in runs:
        check = compared(run, file, artifact, (1, 2))
        assert isinstance(check, NumericCheck)
        assert check.passed == (not said)
        assert check.detail.startswith(said)


EXPECTED = np.array([1.0, -100.0, 0.5], dtype="float32")


def test_an_error_counts_beside_the_largest_output() -> None:
    small = np.array([0.0, 0.09, 0.0], dtype="float32")
    assert differs(EXPECTED + small, EXPECTED) == ""
    assert differs(EXPECTED + 2 * small, EXPECTED) == "off by 0.18, 0.0018 of the largest output"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_none_on_either_side(odd: float) -> None:
    broken = np.array([1.0, odd, 0.5], dtype="float32")
    assert differs(broken, EXPECTED) == "not a number where one is expected"
    assert differs(EXPECTED, broken) == "a number where NaN or infinity is expected"
    assert differs(-np.abs(broken), np.abs(broken)) or np.isnan(odd)
    assert differs(broken, broken) == ""


def test_texts_are_equal_or_not() -> None:
    texts = np.array([["a", "b"]], dtype=object)
    assert differs(texts, texts.astype("<U1")) == ""
    assert differs(np.array([["a", "c"]]), texts) == "'c' instead of 'b'"
    assert differs(np.zeros((1, 2)), texts) == "0.0 instead of 'a'"


def test_integers_must_be_equal() -> None:
    ids = np.array([1000, 2], dtype="int64")
    assert differs(ids, ids) == ""
    assert differs(ids + np.array([0, 1]), ids) != ""


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_that_are_one_number_in_float64_differ(dtype: str) -> None:
    ids = np.array([2**62], dtype)
    assert errors(ids + np.array(3, dtype), ids)[0] == 3
    assert differs(ids + np.array(3, dtype), ids) == "off by 3, 6.5e-19 of the largest output"
    limits = np.iinfo(dtype)
    assert errors(np.array([limits.min], dtype), np.array([limits.max], dtype))[0] == 2.0**64


def test_errors_are_absolute_and_relative_to_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert errors(EXPECTED + 1, EXPECTED) == (1.0, 0.01)
    assert errors(np.zeros(0), np.zeros(0)) == (0.0, 0.0)
    assert errors(np.array([0.25]), np.array([0.0])) == (0.25, 0.25)
    monkeypatch.setattr(tolerance, "_PIECE", 2)
    numbers = np.arange(5.0)
    assert errors(numbers + np.array([0, 0, 2, 0, 1]), numbers) == (2.0, 0.5)
    assert "not a number" in differs(np.append(numbers[:4], np.nan), numbers)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_adds_no_error(value: float) -> None:
    assert errors(np.array([value, 2.0]), np.array([value, 1.0])) == (1.0, 1.0)


def floats(*numbers: float) -> Any:
    return np.array([numbers], dtype="float32")


@pytest.mark.parametrize(
    ("reference", "tells"),
    [
        (floats(0, 1, 0), False),
        (floats(0, 1, 0.5), True),
        (floats(np.nan, np.inf), False),
        (floats(), False),
    ],
)
def test_elements_at_0_or_1_and_no_numbers_tell_nothing(reference: Any, tells: bool) -> None:
    assert TellingElements().tell(reference, reference) is tells


@pytest.mark.parametrize(
    ("got", "reference", "agrees"),
    [
        (floats(0.1, 0.9), floats(0.2, 0.8), True),
        (floats(0.9, 0.1), floats(0.2, 0.8), False),
        (floats(0.9, 0.1), floats(0.5, 0.5), None),
        (floats(0, 1), floats(0, 1), None),
        (floats(0, 0), floats(0, 0), None),
        (floats(np.nan, 1), floats(np.nan, 1), None),
        (floats(1, 2, 3), floats(1, 2), False),
        (floats(1), floats(1), None),
    ],
)
def test_a_row_without_one_largest_value_has_no_place_to_agree_on(
    got: Any, reference: Any, agrees: bool | None
) -> None:
    assert agreement(got, reference) is agrees


# Errors on samples.


X = ArtifactTensor("x", (1, 4), "float32")


def one_operator(folder: Path, operator: str, inputs: tuple[str, ...] = ("x",)) -> Path:
    node = helper.make_node(operator, inputs, ["y"])
    return save(model_of([node], {"x": [1, 4]}, {"y": [1, 4]}), folder / "m.onnx")


def sampled(file: Path, change: Any, x: ArtifactTensor = X) -> SampledErrors | DidNotRun:
    session = ReferenceSession(file)
    return sampled_errors(
        lambda feed: [change(each) for each in session.run(feed)], file, [x], ["y"], range(5)
    )


def tensor(folder: Path, *values: list[float]) -> ArtifactTensor:
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
    found = sampled_errors(ReferenceSession(model).run, model, [wide], ["y"], range(40))
    assert isinstance(found, SampledErrors)
    assert found.inputs == 40
    assert len(found.telling) == len(found.relative) < 40
    assert 0 < len(found.relative) < 20
    assert [each.output for each in found.mostly_saturated] == ["y"]


def test_an_output_that_is_nan_on_both_sides_tells_no_error(tmp_path: Path) -> None:
    model = one_operator(tmp_path, "Log")
    below_0 = ArtifactTensor("x", (1, 4), "float32", InputRule(Uniform(-2.0, -1.0)))
    found = sampled_errors(ReferenceSession(model).run, model, [below_0], ["y"], range(5))
    assert found == SampledErrors(saturated=("y",), inputs=5)


def test_a_nan_is_no_error_of_some_size(tmp_path: Path) -> None:
    found = sampled(one_operator(tmp_path, "Neg"), lambda y: y * np.float32("nan"))
    assert isinstance(found, DidNotRun)


def test_all_cases_are_run_also_where_the_budget_needs_fewer(tmp_path: Path) -> None:
    cases = tensor(tmp_path, *([float(n), 1.0, 2.0, 3.0] for n in range(9)))
    found = sampled(one_operator(tmp_path, "Neg"), lambda y: y, cases)
    assert isinstance(found, SampledErrors)
    assert found.inputs == 9


def test_an_output_that_is_largest_in_one_place_has_nothing_to_agree_on(tmp_path: Path) -> None:
    model = one_operator(tmp_path, "Neg")
    first = [[n / 10, 1.0, 2.0, 3.0] for n in range(3)]
    found = sampled(model, lambda y: y, tensor(tmp_path, *first))
    assert isinstance(found, SampledErrors)
    assert (found.agrees, found.one_place, found.saturated) == ((), ("y",), ())
    assert len(found.relative) == 3
    found = sampled(model, lambda y: y, tensor(tmp_path, *first, [3.0, 2.0, 1.0, 0.0]))
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


def test_too_large_cases_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_samples, "MAX_CASES_BYTES", 50)
    kept = CaseFiles(tmp_path, [CASE_FILES_X], ["y"])
    for case in range(3):
        kept.add(case, {"x": ONES}, [ONES], [ONES])
    expected = ["case-0000.npz", "case-0001.npz"]
    assert [each.name for each in sorted(tmp_path.glob("*.npz"))] == expected


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
    of_blocks: dict[str, Any] = {"bits": 4, "block_size": 32, "accuracy_level": accuracy_level}
    product = node(
        "MatMulNBits", "x w scales", "y", domain="com.microsoft", K=64, N=32, **of_blocks
    )
    x = GraphInput("x", (4, 64), "float32")
    return graph_of([product], [x], weights={"w": packed, "scales": scales})


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
    for each, scale in ((base, 1.0), (head, 2.0)):
        each.graph.node[0].output[0] = "product"
        scaled = helper.make_node(
            "Scaler", ["product"], ["y"], domain="ai.onnx.ml", scale=[scale], offset=[0.0]
        )
        each.graph.node.append(scaled)
        each.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
        del each.graph.initializer[:]
        each.graph.initializer.append(numpy_helper.from_array(np.ones((64, 16), "f4"), "w"))
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
    check = compared(lambda feed: [feed["x"]], now, artifact_of(x, y), (1,))
    assert (check.passed, check.detail) == (False, said)  # type: ignore[union-attr]


def test_a_base_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "base.onnx").write_bytes(b"nonsense")
    head = save(matmul_model(rows=4, inner=64), tmp_path / "head.onnx")
    assert lines_beside_base(tmp_path / "base.onnx", head, INPUTS, 1) == ()
