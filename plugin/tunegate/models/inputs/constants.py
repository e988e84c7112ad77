"""Evaluates small constants of a graph without a runtime: bounds, shapes and tables of names."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tunegate.models.graph import STANDARD_DOMAINS
from tunegate.system.onnx_scan import is_external

_Arrays = Sequence[Any]
_Attributes = dict[str, Any]


def tensor_values(tensor: onnx.TensorProto, most: int) -> Any:
    """Returns the array of a tensor, None if it has more than `most` numbers or is not in the
    file."""
    if math.prod(tensor.dims) > most or is_external(tensor):
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError):
        return None  # its type, shape and data contradict each other


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Returns the attributes of a node as Python values."""
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


def evaluate_node(node: onnx.NodeProto, arrays: _Arrays, most: int) -> Any:
    """Returns the value of a node with constant inputs, None if the operator is not one of a few
    simple ones or the result has more than `most` numbers. `Shape` and `Size` get a shape."""
    attributes = attributes_of(node)
    if node.op_type == "Constant":
        return _constant(attributes, most)
    evaluate = _SIMPLE.get(node.op_type)
    if evaluate is None or node.domain not in STANDARD_DOMAINS:
        return None
    try:
        with np.errstate(all="ignore"):
            value = evaluate(arrays, attributes)
    except Exception:  # noqa: BLE001 -- unfit operands: the value is unknown
        return None
    return value if value is not None and np.asarray(value).size <= most else None


def _constant(attributes: _Attributes, most: int) -> Any:
    for name, value in attributes.items():
        if name == "value":
            return tensor_values(value, most)
        if name in {"value_int", "value_ints"}:
            return np.asarray(value, np.int64)
        if name in {"value_float", "value_floats"}:
            return np.asarray(value, np.float32)
        if name in {"value_string", "value_strings"}:
            return np.asarray(value, object)
    return None


def _shape(arrays: _Arrays, attributes: _Attributes) -> Any:
    dims = arrays[0]
    if dims is None:
        return None
    dims = dims[attributes.get("start", 0) : attributes.get("end")]
    return None if None in dims else np.asarray(dims, np.int64)


def _size(arrays: _Arrays, _: _Attributes) -> Any:
    dims = arrays[0]
    return None if dims is None or None in dims else np.asarray(math.prod(dims), np.int64)


def _axes(arrays: _Arrays, attributes: _Attributes) -> tuple[int, ...] | None:
    axes = arrays[1] if len(arrays) > 1 and arrays[1] is not None else attributes.get("axes")
    return None if axes is None else tuple(int(axis) for axis in np.ravel(axes))


def _cast(arrays: _Arrays, attributes: _Attributes) -> Any:
    return arrays[0].astype(onnx.helper.tensor_dtype_to_np_dtype(attributes["to"]))


def _range(arrays: _Arrays, _: _Attributes) -> Any:
    start, limit, delta = (array.item() for array in arrays)
    is_small = (limit - start) / delta <= 2**20
    return np.arange(start, limit, delta, dtype=arrays[0].dtype) if is_small else None


def _slice(arrays: _Arrays, attributes: _Attributes) -> Any:
    if len(arrays) == 1:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes", range(len(starts))), [1] * len(starts)
    else:
        more = (*arrays[3:], None, None)
        starts, ends = arrays[1], arrays[2]
        axes = range(len(starts)) if more[0] is None else more[0]
        steps = [1] * len(starts) if more[1] is None else more[1]
    array = arrays[0]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        where = [slice(None)] * array.ndim
        where[axis] = slice(int(start), int(end), int(step))
        array = array[tuple(where)]
    return array


def _divide(arrays: _Arrays, _: _Attributes) -> Any:
    is_whole = arrays[0].dtype.kind in "iu"
    return arrays[0] // arrays[1] if is_whole else arrays[0] / arrays[1]


_SIMPLE: dict[str, Callable[[_Arrays, _Attributes], Any]] = {
    "Shape": _shape,
    "Size": _size,
    "Unsqueeze": lambda arrays, settings: np.expand_dims(arrays[0], _axes(arrays, settings) or ()),
    "Squeeze": lambda arrays, settings: np.squeeze(arrays[0], _axes(arrays, settings)),
    "Cast": _cast,
    "Range": _range,
    "Gather": lambda arrays, settings: np.take(arrays[0], arrays[1], axis=settings.get("axis", 0)),
    "Concat": lambda arrays, settings: np.concatenate(arrays, axis=settings["axis"]),
    "Reshape": lambda arrays, _: np.reshape(arrays[0], arrays[1]),
    "Slice": _slice,
    "Div": _divide,
    "Add": lambda arrays, _: arrays[0] + arrays[1],
    "Sub": lambda arrays, _: arrays[0] - arrays[1],
    "Mul": lambda arrays, _: arrays[0] * arrays[1],
    "Neg": lambda arrays, _: -arrays[0],
    "Sqrt": lambda arrays, _: np.sqrt(arrays[0]),
    "Reciprocal": lambda arrays, _: 1 / arrays[0],
    "Identity": lambda arrays, _: arrays[0],
}
