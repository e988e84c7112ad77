"""Quantizes a model's matrix products to int8 with ONNX Runtime's own tool.

Weights are quantized here, by column; activations in each inference, by their range in it.
"""

import logging
from pathlib import Path

import onnx

from tunegate.errors import NotOfferedError
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.onnx_runtime import quantization
from tunegate.system.onnx_scan import nodes_of

_QUANTIZED = "MatMulInteger"


def save_quantized(model: PreparedModel, file: Path) -> None:
    """Writes the model. Raises NotOfferedError if it would not change, or is too large."""
    if model.weights is not None:
        message = "its tool quantizes no model of 2 GB"
        raise NotOfferedError(message)
    # Advice to optimize the model first: the session does.
    logging.getLogger().setLevel(logging.ERROR)
    # Not by path: the tool would write beside the user's file.
    tool = quantization()
    tool.quantize_dynamic(
        onnx.load(model.original),
        file,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        weight_type=tool.QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )
    found = onnx.load(file, load_external_data=False)
    if not any(node.op_type == _QUANTIZED for node in nodes_of(found)):
        message = "no matrix product has constant weights to quantize"
        raise NotOfferedError(message)
