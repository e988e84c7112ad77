"""Quantizes a model with OpenVINO's own tool, NNCF, into the files that OpenVINO writes.

Batch norms are merged first. If two activations are multiplied, as in attention, NNCF is told that
the model is a transformer: it then quantizes with more care, and such models get four times more
exact.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import msgspec
import nncf
import onnx

from tunegate.errors import NotOfferedError
from tunegate.models.prepared import PreparedModel
from tunegate.runtimes.openvino.layer_names import LAYERS, onnx_names
from tunegate.runtimes.openvino.library import openvino

_FILE: Final = "model.xml"
_MAX_INPUTS: Final = 32
_QUANTIZES: Final = "FakeQuantize"
_ATTENTION: Final = "ScaledDotProductAttention"


def save_own(model: PreparedModel, directory: Path) -> str:
    """Writes the model, and returns the name of the file to load. Raises NotOfferedError if there
    is nothing to quantize."""
    nncf.set_log_level(logging.ERROR)
    graph = openvino.convert_model(model.original)
    graph.reshape({each.name: list(each.shape) for each in model.inputs})
    int8_model = nncf.quantize(
        graph,
        nncf.Dataset(model.calibration),
        subset_size=_MAX_INPUTS,
        target_device=nncf.TargetDevice.CPU,
        model_type=nncf.ModelType.TRANSFORMER if multiplies_activations(graph) else None,
    )
    if not any(each.get_type_name() == _QUANTIZES for each in int8_model.get_ops()):
        raise NotOfferedError("it has no convolution and no matrix product to quantize")
    names = onnx_names(onnx.load(model.original, load_external_data=False))
    int8_model.set_rt_info(msgspec.json.encode(sorted(names)).decode(), [LAYERS])
    openvino.save_model(int8_model, directory / _FILE, compress_to_fp16=False)
    return _FILE


def multiplies_activations(graph: Any) -> bool:
    """Returns whether a matrix product has no constant operand, or belongs to an attention."""
    operators = graph.get_ops()
    if any(operator.get_type_name() == _ATTENTION for operator in operators):
        return True
    products = (operator for operator in operators if operator.get_type_name() == "MatMul")
    return any(not any(map(_is_constant, product.input_values())) for product in products)


def _is_constant(value: Any) -> bool:
    """Returns whether the value is constant; a constant of fewer bits is behind a conversion."""
    node = value.get_node()
    if node.get_type_name() == "Convert":
        return _is_constant(node.input_value(0))
    return bool(node.get_type_name() == "Constant")
