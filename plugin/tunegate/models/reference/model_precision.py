"""The precision that a model requires, by the types of its weights and operators."""

import logging
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import onnx
from onnx import TensorProto

from tunegate.errors import NotOfferedError
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.onnx_runtime import float16_tool
from tunegate.models.reference.tolerance import tolerance

QUANTIZED = frozenset({"int8", "uint8", "int4", "uint4", "int2", "uint2"})
"""Output types whose numbers are steps of a quantization."""
_LEAST_WEIGHTS = 16
"""The elements from which a tensor counts as weights, not as a setting such as a scale."""
_NARROW: dict[int, str] = {TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16"}
_QUANTIZING = ("Quantize", "Dequantize", "DynamicQuantize", "QLinear", "QGemm")
_MAX_OF_FLOATS, _MAX_OF_QUANTIZED = 0.01, 0.05
"""The largest error ever allowed for the noise of a reference."""
_SLACK = 2.0
"""A build may be off in one direction where the reference is off in the other."""


class ModelPrecision(msgspec.Struct, frozen=True, kw_only=True):
    """`tolerance` follows from the weights' type; `max_noise` limits what the reference's noise may
    add."""

    tolerance: float = 0.0
    max_noise: float = _MAX_OF_FLOATS

    def allowed_error(self, dtype: str, noise: float) -> float:
        """Returns the allowed error of an output relative to its largest magnitude, if the
        reference's own noise is `noise`."""
        usual = tolerance(dtype)
        if not usual and dtype not in QUANTIZED:
            return 0.0
        return max(usual, self.tolerance, min(_SLACK * noise, self.max_noise))


def precision_of(graph: onnx.GraphProto) -> ModelPrecision:
    """Returns the precision, without looking into data files."""
    narrow = _narrow_weights(graph)
    operators = {node.op_type for node in graph.node}
    if any(each.startswith(_QUANTIZING) or each.endswith("Integer") for each in operators):
        return ModelPrecision(tolerance=narrow, max_noise=_MAX_OF_QUANTIZED)
    return ModelPrecision(tolerance=narrow)


def constant_weights(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Yields the constants of a graph that are no settings of an operator."""
    constants = [
        attribute.t
        for node in graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.type == onnx.AttributeProto.TENSOR
    ]
    for tensor in [*graph.initializer, *constants]:
        if math.prod(tensor.dims) >= _LEAST_WEIGHTS:
            yield tensor


def _narrow_weights(graph: onnx.GraphProto) -> float:
    """Returns the tolerance of the narrow type that most weights have, 0 if most are wider."""
    sizes: Counter[int] = Counter()
    for tensor in constant_weights(graph):
        sizes[tensor.data_type] += math.prod(tensor.dims)
    (most, _), *_ = sizes.most_common(1) or [(0, 0)]
    return tolerance(_NARROW[most]) if most in _NARROW else 0.0


# Converts a model to float16, except for its inputs and outputs.

_FLOAT16 = onnx.TensorProto.FLOAT16


def save_float16(model: PreparedModel, file: Path) -> None:
    """Writes the model with float16 weights, except for operators that count or sort. Raises
    NotOfferedError if it is too large, or has nothing to convert."""
    if model.weights is not None:
        raise NotOfferedError("its tool converts no model of 2 GB")
    # The tool logs each weight below the least float16.
    logging.getLogger().setLevel(logging.ERROR)
    proto = onnx.load(model.original if model.unfixable else model.fixed)
    float16_model = float16_tool().convert_float_to_float16(proto, keep_io_types=True)
    if not any(each.data_type == _FLOAT16 for each in float16_model.graph.initializer):
        raise NotOfferedError("it has no weights in float32")
    onnx.save(float16_model, file)
