"""A model in float16, whose inputs and outputs stay as they are."""

from __future__ import annotations

import logging
from pathlib import Path

import onnx

from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.reference.onnx_runtime import float16_tool
from tunegate.errors import NotOfferedError

_FLOAT16 = onnx.TensorProto.FLOAT16


def save_float16(model: PreparedModel, file: Path) -> None:
    """Writes the model with its weights in float16, but for operators that count or sort. Raises
    NotOfferedError for one that is too large, or has nothing to convert."""
    if model.weights is not None:
        message = "its tool converts no model of 2 GB"
        raise NotOfferedError(message)
    # Weights below the least float16 are told one by one.
    logging.getLogger().setLevel(logging.ERROR)
    proto = onnx.load(model.original if model.unfixable else model.fixed)
    converted = float16_tool().convert_float_to_float16(proto, keep_io_types=True)
    if not any(each.data_type == _FLOAT16 for each in converted.graph.initializer):
        message = "it has no weights in float32"
        raise NotOfferedError(message)
    onnx.save(converted, file)
