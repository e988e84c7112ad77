"""The form of an input: a tensor, a sequence of them, or one of these that may be absent."""

from __future__ import annotations

from typing import NamedTuple

import onnx

from tunegate.artifacts.input_rules import InputForm

_FORMS: dict[tuple[str, ...], InputForm] = {
    ("tensor_type",): "",
    ("sequence_type", "tensor_type"): "sequence",
    ("optional_type", "tensor_type"): "optional",
    ("optional_type", "sequence_type", "tensor_type"): "optional sequence",
}


class InputKind(NamedTuple):
    """The form of an input, and the type of its tensors; `form` is None for maps and others, which
    cannot be given, and `kind` is ONNX's word for what it is."""

    form: InputForm | None
    tensor: onnx.TypeProto.Tensor
    kind: str


def made_of(value: onnx.ValueInfoProto) -> InputKind:
    """Looks through sequences and optional values."""
    kinds: list[str] = []
    inner = value.type
    while True:
        kind = str(inner.WhichOneof("value"))
        kinds.append(kind)
        if kind not in {"sequence_type", "optional_type"} or len(kinds) > len(_FORMS):
            break
        inner = getattr(inner, kind).elem_type
    words = " of ".join(each.removesuffix("_type").replace("_", " ") for each in kinds)
    return InputKind(_FORMS.get(tuple(kinds)), inner.tensor_type, words)


def stated_size(dimension: onnx.TensorShapeProto.Dimension) -> int | None:
    """The size that a model says, which may be 0; None where it leaves a dimension open."""
    is_said = dimension.HasField("dim_value") and dimension.dim_value >= 0
    return int(dimension.dim_value) if is_said else None
