from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from tunegate.artifacts.inputs import InputForm
from tunegate.models.model_inputs import made_of, stated_size

TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [0, "n"])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)
MAP = onnx.TypeProto(map_type={"key_type": TensorProto.STRING, "value_type": TENSOR})


@pytest.mark.parametrize(
    ("kind", "form", "words"),
    [
        (TENSOR, "", "tensor"),
        (SEQUENCE, "sequence", "sequence of tensor"),
        (helper.make_optional_type_proto(TENSOR), "optional", "optional of tensor"),
        (
            helper.make_optional_type_proto(SEQUENCE),
            "optional sequence",
            "optional of sequence of tensor",
        ),
    ],
)
def test_what_has_tensors_inside_has_their_type(
    kind: onnx.TypeProto, form: InputForm, words: str
) -> None:
    made = made_of(helper.make_value_info("x", kind))
    assert (made.form, made.kind) == (form, words)
    assert [stated_size(each) for each in made.tensor.shape.dim] == [0, None]


@pytest.mark.parametrize("kind", [MAP, helper.make_sequence_type_proto(MAP), onnx.TypeProto()])
def test_what_cannot_be_given_has_no_form(kind: onnx.TypeProto) -> None:
    assert made_of(onnx.ValueInfoProto(name="x", type=kind)).form is None


def test_sequences_inside_of_sequences_have_no_form() -> None:
    kind = TENSOR
    for _ in range(50):
        kind = helper.make_sequence_type_proto(kind)
    assert made_of(helper.make_value_info("x", kind)).form is None
