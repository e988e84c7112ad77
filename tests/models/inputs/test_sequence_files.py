from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.models.inputs.test_given_values import Given, arrays_of, npy_of
from tests.support.graphs import GraphInput, graph_of, node
from tunegate.artifacts.inputs import InputForm
from tunegate.config import ValuesConfig
from tunegate.errors import ModelError
from tunegate.models.inputs import value_files as array_files
from tunegate.models.inputs import value_files as sequence_files
from tunegate.models.inputs.value_files import read_value
from tunegate.models.kept_values import load_value

ONE, TWO = np.array([1, 2]), np.array([[3.5]])


def _npz(*arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, *arrays)
    return stream.getvalue()


def _sequence(*arrays: Any) -> bytes:
    return bytes(onnx.numpy_helper.from_list(list(arrays)).SerializeToString())


def _optional(value: Any, kind: int) -> bytes:
    return bytes(onnx.numpy_helper.from_optional(value, None, kind).SerializeToString())


def _lists(value: Any) -> Any:
    if value is None:
        return None
    return [each.tolist() for each in value] if isinstance(value, list) else value.tolist()


@pytest.mark.parametrize(
    ("name", "content", "form", "value"),
    [
        ("a.pb", _sequence(ONE, TWO), "sequence", [[1, 2], [[3.5]]]),
        ("a.pb", _sequence(), "sequence", []),
        ("a.npz", _npz(ONE, TWO), "sequence", [[1, 2], [[3.5]]]),
        ("a.npz", _npz(*range(12)), "sequence", [*range(12)]),
        ("a.pb", _optional(ONE, onnx.OptionalProto.TENSOR), "optional", [1, 2]),
        ("a.pb", _optional(None, onnx.OptionalProto.TENSOR), "optional", None),
        ("a.pb", _optional([ONE], onnx.OptionalProto.SEQUENCE), "optional sequence", [[1, 2]]),
        ("a.npz", _npz(ONE), "optional sequence", [[1, 2]]),
    ],
)
def test_values_are_read_in_their_order(
    name: str, content: bytes, form: InputForm, value: Any
) -> None:
    assert _lists(read_value(content, name, "x", form)) == value


_TENSOR = onnx.numpy_helper.from_array(np.ones(1, np.float32)).SerializeToString()
_NESTED = onnx.SequenceProto(elem_type=onnx.SequenceProto.SEQUENCE)
_NESTED.sequence_values.add()


@pytest.mark.parametrize(
    ("content", "form", "said"),
    [
        (_TENSOR, "sequence", "no SequenceProto"),
        (_TENSOR, "optional", "no OptionalProto"),
        (_NESTED.SerializeToString(), "sequence", "no sequence of tensors"),
        (_optional([ONE], onnx.OptionalProto.SEQUENCE), "optional", "it is no optional"),
        (b"\xff\xff", "sequence", "cannot be read as .pb"),
    ],
)
def test_other_messages_are_refused(content: bytes, form: InputForm, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read_value(content, "a.pb", "x", form)


def test_a_sequence_has_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    long = _sequence(*[np.zeros(0)] * (sequence_files.MAX_TENSORS + 1))
    with pytest.raises(ModelError, match="it has 1025 tensors; a sequence may have 1024"):
        read_value(long, "a.pb", "x", "sequence")
    monkeypatch.setattr(sequence_files, "MAX_ARRAY_BYTES", 3000)
    monkeypatch.setattr(array_files, "MAX_ARRAY_BYTES", 3000)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for place in range(3):
            stream = io.BytesIO()
            np.save(stream, np.zeros(150))
            archive.writestr(f"{place}.npy", stream.getvalue())
    assert len(packed.getvalue()) < 3000
    with pytest.raises(ModelError, match="an input may have"):
        read_value(packed.getvalue(), "a.npz", "x", "sequence")


@settings(max_examples=60)
@given(cut=st.integers(0, 60), at=st.integers(0, 59), byte=st.integers(0, 255))
@example(cut=0, at=0, byte=0)
def test_damaged_messages_are_values_or_told(cut: int, at: int, byte: int) -> None:
    content = bytearray(_sequence(ONE, TWO))
    content[at % len(content)] = byte
    for form in ("sequence", "optional", "optional sequence"):
        with contextlib.suppress(ModelError):
            read_value(bytes(content[: len(content) - cut]), "a.pb", "x", form)


def test_an_empty_input_takes_an_empty_file_and_no_other(tmp_path: Path) -> None:
    given = Given(tmp_path)
    boxes = GraphInput("boxes", (0, 4), "float32")
    onnx.save(graph_of([node("Relu", "boxes", "y")], [boxes]), given.model)
    one = onnx.numpy_helper.from_array(np.zeros((1, 4), np.float32)).SerializeToString()
    none = onnx.numpy_helper.from_array(np.zeros((0, 4), np.float32)).SerializeToString()
    given.checkout.commit({"one.pb": one, "none.pb": none})
    (rule,) = given.rules(boxes=ValuesConfig(file="none.pb")).rules.values()
    assert arrays_of(rule) == [[]]
    (filled,) = given.rules(boxes=ValuesConfig(cases=(1.0,))).rules.values()
    assert arrays_of(filled) == [[]]
    assert given.rules(boxes=ValuesConfig(file="one.pb")).problems == (
        "inputs.boxes.values: one.pb has shape [1, 4] instead of [0, 4].",
    )


def _of_sequence(given: Given, *shape: int | str) -> None:
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, shape)
    parts = onnx.helper.make_value_info("parts", onnx.helper.make_sequence_type_proto(tensor))
    model = graph_of([node("SequenceLength", "parts", "y")], [])
    model.graph.input.append(parts)
    onnx.save(model, given.model)


def test_a_sequence_is_one_file_or_one_for_each_tensor(tmp_path: Path) -> None:
    given = Given(tmp_path)
    given.shapes = {"parts": (4,)}
    _of_sequence(given, "n")
    one, two = np.ones(1, np.float32), np.ones(2, np.float32)
    whole = onnx.numpy_helper.from_list([one, two]).SerializeToString()
    given.checkout.commit({"s.pb": whole, "1.npy": npy_of(one), "2.npy": npy_of(two)})
    kept = []
    for values in (ValuesConfig(file="s.pb"), ValuesConfig(sequence=("1.npy", "2.npy"))):
        found = given.rules(parts=values)
        assert found.problems == ()
        kept.append(found.rules["parts"].values)
    assert kept[0].files == kept[1].files  # type: ignore[union-attr]
    (file,) = kept[0].files  # type: ignore[union-attr]
    assert [each.tolist() for each in load_value(Path(file), "float32")] == [[1], [1, 1]]
    (empty,) = given.rules(parts=ValuesConfig(sequence=())).rules.values()
    assert load_value(Path(empty.values.files[0]), "float32") == []  # type: ignore[union-attr]


def test_what_is_no_sequence_is_told(tmp_path: Path) -> None:
    given = Given(tmp_path)
    _of_sequence(given, 2)
    whole = onnx.numpy_helper.from_list([np.ones(3, np.float32)]).SerializeToString()
    given.checkout.commit({"s.pb": whole, "1.npy": npy_of(np.ones(2))})
    said = [
        given.rules(parts=values).problems
        for values in (
            ValuesConfig(file="s.pb"),
            ValuesConfig(file="1.npy"),
            ValuesConfig(sequence=("1.npy",)),
            ValuesConfig(cases=(1.0,)),
        )
    ]
    assert said == [
        ("inputs.parts.values: s.pb has shape [3] instead of [2].",),
        ("inputs.parts.values: 1.npy: it holds one array, and the input is a sequence of them.",),
        ("inputs.parts.values: 1.npy has type float64 instead of float32.",),
        ("inputs.parts.values: 1.0 fills no sequence: give a file.",),
    ]


def test_only_a_sequence_is_given_one(tmp_path: Path) -> None:
    repository = Given(tmp_path)
    repository.checkout.commit({"ids.npy": npy_of(np.array([1, 2]))})
    assert repository.rules(ids=ValuesConfig(sequence=("ids.npy",))).problems == (
        "inputs.ids.values: the input is no sequence: give a file, or cases.",
    )
