"""Quantizes a model to int8 with ranges of given inputs: an ONNX file with pairs of QuantizeLinear
and DequantizeLinear (QDQ), which every runtime that knows the standard reads."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import onnx.version_converter
from onnx import numpy_helper

from tunegate.errors import NotOfferedError
from tunegate.models.graph import STANDARD_DOMAINS
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.onnx_runtime import quantization
from tunegate.models.reference.session import write_optimized
from tunegate.system.onnx_scan import nodes_of

_QUANTIZED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_PER_CHANNEL_OPSET = 13
"""The first opset with a weight scale per channel."""
_TARGET_OPSET = 17
_GEMM_INPUTS = 3
_SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False}


def save_static(model: PreparedModel, file: Path, *, is_symmetric: bool = False) -> None:
    """Writes the model with int8 weights per channel and uint8 activations, as x86 has instructions
    for. If symmetric, activations are int8 around 0 and biases stay float32, as tensor cores need.
    Raises NotOfferedError if the model is too large or has nothing to quantize."""
    if model.weights is not None:
        raise NotOfferedError("its tool quantizes no model of 2 GB")
    # Advice to optimize the model first: that was done.
    logging.getLogger().setLevel(logging.ERROR)
    with TemporaryDirectory(dir=file.parent) as scratch:
        optimized = _merge_batch_norms(onnx.load(model.original), Path(scratch))
        _refuse_nothing_to_quantize(onnx.load(optimized))
        _quantize(optimized, file, model.calibration, is_symmetric=is_symmetric)


def _refuse_nothing_to_quantize(proto: onnx.ModelProto) -> None:
    """Raises NotOfferedError if nothing is quantized. The tool skips the bodies of If, Loop and
    Scan: a model that computes only there would stay float32 under another name."""
    if any(node.op_type in _QUANTIZED for node in proto.graph.node):
        return
    is_within = any(node.op_type in _QUANTIZED for node in nodes_of(proto))
    where = " outside of its branches and loops" if is_within else ""
    raise NotOfferedError(f"it has no convolution and no matrix product to quantize{where}")


def _merge_batch_norms(proto: onnx.ModelProto, scratch: Path) -> Path:
    """Merges batch norms into convolutions before these are quantized."""
    opset = next(each.version for each in proto.opset_import if each.domain in STANDARD_DOMAINS)
    if opset < _PER_CHANNEL_OPSET:
        proto = onnx.version_converter.convert_version(proto, _TARGET_OPSET)
    onnx.save(proto, scratch / "model.onnx")
    optimized = scratch / "optimized.onnx"
    write_optimized(scratch / "model.onnx", optimized)
    onnx.save(with_flat_biases(onnx.load(optimized)), optimized)
    return optimized


def with_flat_biases(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the model with one-row biases as vectors. ONNX Runtime merges a product and a sum
    into such a Gemm, and its tool takes only vectors (microsoft/onnxruntime#24815)."""
    constants = {each.name: each for each in proto.graph.initializer}
    for node in proto.graph.node:
        bias = constants.get(node.input[2]) if len(node.input) == _GEMM_INPUTS else None
        if node.op_type != "Gemm" or bias is None or list(bias.dims[:-1]) != [1]:
            continue
        vector = numpy_helper.from_array(numpy_helper.to_array(bias)[0], f"{bias.name}_flat")
        if vector.name not in constants:
            constants[vector.name] = vector
            proto.graph.initializer.append(vector)
        node.input[2] = vector.name
    return proto


def _quantize(
    optimized: Path, file: Path, inputs: Iterable[Mapping[str, Any]], *, is_symmetric: bool
) -> None:
    tool = quantization()
    types = tool.QuantType
    tool.quantize_static(
        optimized,
        file,
        _reader(tool, iter(inputs)),
        quant_format=tool.QuantFormat.QDQ,
        per_channel=True,
        weight_type=types.QInt8,
        activation_type=types.QInt8 if is_symmetric else types.QUInt8,
        extra_options=_SYMMETRIC if is_symmetric else {},
    )


def _reader(tool: Any, inputs: Iterator[Mapping[str, Any]]) -> Any:
    class Reader(tool.CalibrationDataReader):  # type: ignore[misc]  # it is loaded on demand
        def get_next(self) -> Any:
            return next(inputs, None)

    return Reader()
