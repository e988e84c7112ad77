from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.models import inexact
from tests.support.models.unusual import map_model
from tests.support.small_onnx import one_node_model, save
from tunegate.artifacts.builds import NumericCheck
from tunegate.models.reference.comparison import DidNotRun, compared
from tunegate.models.reference.error_samples import TellingElements, agreement
from tunegate.models.reference.onnx_runtime import exact_options, onnxruntime
from tunegate.models.reference.tolerance import differs, errors
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

Run = Callable[[Mapping[str, Any]], Sequence[Any]]


@pytest.fixture
def found(tmp_path: Path) -> Callable[[Run], NumericCheck | DidNotRun]:
    """What is said of a function beside a Relu."""
    model = save(one_node_model("Relu"), tmp_path / "m.onnx")
    tensors = [ArtifactTensor(name, shape(model), "float32") for name in ("x", "y")]
    artifact = ArtifactFile(
        runtime="any", file="m.onnx", inputs=(tensors[0],), outputs=(tensors[1],), threads=1
    )
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
    artifact = ArtifactFile(
        runtime="any",
        file="m.onnx",
        inputs=(ArtifactTensor(given.name, tuple(given.shape), "float32"),),
        outputs=(ArtifactTensor(name or made.name, dims, dtype),),
        threads=1,
    )
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
    artifact = ArtifactFile(
        runtime="any",
        file="m.onnx",
        inputs=(ArtifactTensor("x", (2, 3), "float32"),),
        outputs=outputs,
        threads=1,
    )
    same = onnxruntime.InferenceSession(file)
    equal = compared(lambda feed: same.run(None, feed), file, artifact, (1,))
    wrong = compared(lambda feed: other.run(None, feed), file, artifact, (1,))
    assert isinstance(equal, NumericCheck)
    assert isinstance(wrong, NumericCheck)
    assert (equal.passed, wrong.passed) == (True, False)
    assert wrong.detail.startswith("output maps (2 maps) values is off by")
    assert [output.max_absolute > 0 for output in wrong.outputs] == [False, True]


def test_a_reference_that_does_not_run_is_told(tmp_path: Path) -> None:
    artifact = ArtifactFile(runtime="any", file="m.onnx", inputs=(), outputs=(), threads=1)
    found = compared(lambda feed: [], tmp_path / "none.onnx", artifact, (1,))
    assert isinstance(found, DidNotRun)
    assert found.of_reference


def test_a_build_may_be_off_as_far_as_the_reference_is_from_itself(tmp_path: Path) -> None:
    check = beside(inexact.cancelling_model(1500.0), 1.004, tmp_path)
    assert check.passed
    assert check.reference_noise is not None
    assert 0.002 < check.tolerance <= 0.01


@pytest.mark.parametrize("offset", [0.0, 1500.0, 1e6])
def test_a_reference_full_of_noise_is_no_door_for_any_numbers(
    tmp_path: Path, offset: float
) -> None:
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
    assert check.reference_noise is not None
    assert check.reference_noise > 0.05


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_reference_is_the_model_as_it_is_written(kind: str, tmp_path: Path) -> None:
    """ONNX Runtime takes it for a norm of rows, which it is not; production would be wrong."""
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    right = beside(inexact.row_norm(kind, keepdims=0), 1.0, tmp_path, level=level)
    assert (right.passed, right.as_written) == (True, True)
    assert right.reference_noise is not None
    assert right.reference_noise > 0.05
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
    """What is said of the reference's own numbers times a factor."""
    file = save(model, directory / "m.onnx")
    options = exact_options()
    options.graph_optimization_level = level
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(str(file), options, providers=providers)
    tensors = [
        ArtifactTensor(each.name, tuple(each.shape), "float32")
        for each in (*session.get_inputs(), *session.get_outputs())
    ]
    artifact = ArtifactFile(
        runtime="any", file="m.onnx", inputs=(tensors[0],), outputs=(tensors[1],), threads=1
    )
    found = compared(
        lambda feed: [each * factor + off for each in session.run(None, dict(feed))],
        file,
        artifact,
        (1, 2),
    )
    assert isinstance(found, NumericCheck)
    return found


@pytest.mark.parametrize("name", ["BFLOAT16", "FLOAT8E4M3FN", "INT4"])
def test_outputs_of_types_that_numpy_lacks_are_compared_as_what_they_are(
    name: str, tmp_path: Path
) -> None:
    number = onnx.TensorProto.DataType.Value(name)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Cast", ["x"], ["y"], to=number)],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 4])],
        [onnx.helper.make_tensor_value_info("y", number, [4, 4])],
    )
    opset = [onnx.helper.make_opsetid("", 21)]
    file = save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=10), tmp_path / "m")
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    artifact = ArtifactFile(
        runtime="any",
        file="m",
        inputs=(ArtifactTensor("x", (4, 4), "float32"),),
        outputs=(ArtifactTensor("y", (4, 4), str(dtype)),),
        threads=1,
    )
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


def test_errors_are_absolute_and_relative_to_the_largest_magnitude() -> None:
    assert errors(EXPECTED + 1, EXPECTED) == (1.0, 0.01)
    assert errors(np.zeros(0), np.zeros(0)) == (0.0, 0.0)
    assert errors(np.array([0.25]), np.array([0.0])) == (0.25, 0.25)


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
def test_elements_at_0_or_1_and_those_that_are_no_number_tell_nothing(
    reference: Any, tells: bool
) -> None:
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
