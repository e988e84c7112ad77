"""Number types that NumPy lacks, such as bfloat16, float8 and int4: arrays of them, and their way
in and out of ONNX Runtime, whose own API takes only NumPy's types."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

_NUMBERS: Final[Mapping[str, int]] = {
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4_e2m1fn": 23,
    "float8_e8m0fnu": 24,
    "uint2": 25,
    "int2": 26,
}
"""ONNX's number of each type, by its name in `ml_dtypes`."""
_NAMES: Final = {number: name for name, number in _NUMBERS.items()}
BITS: Final = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2}
"""The bits of types that share a byte; the first number is in the lowest bits."""
_AS_ONNX_RUNTIME_SAYS = ("bfloat16", "float8", "float4", "int4", "uint4", "int2", "uint2")


def dtype_named(name: str) -> np.dtype:
    """Returns the type of this name, NumPy's own or not."""
    if name in _NUMBERS:
        import ml_dtypes  # noqa: F401, PLC0415 -- NumPy knows the names once it is loaded
    return np.dtype(name)


def is_narrow(dtype: Any) -> bool:
    """Returns whether NumPy lacks the type."""
    return str(dtype) in _NUMBERS


def kind_of(dtype: Any) -> str:
    """Returns NumPy's letter for a type's kind; all types that are not its own share one."""
    name = str(dtype)
    if name not in _NUMBERS:
        return str(np.dtype(dtype).kind)
    return {"b": "f", "f": "f", "u": "u", "i": "i"}[name[0]]


def stands_for(dtype: Any, declared: Any) -> bool:
    """Returns whether a file may use this type for an input whose type NumPy's files cannot name: a
    wider one of its kind, or bytes of its width."""
    if not is_narrow(declared):
        return False
    wider = {"f": "float32", "i": "int8", "u": "uint8"}[kind_of(declared)]
    is_bytes = dtype.kind == "V" and not is_narrow(dtype) and dtype.itemsize == declared.itemsize
    return str(dtype) == wider or is_bytes


def limits_of(dtype: Any) -> tuple[int, int]:
    """Returns the least and the largest value of an integer type."""
    name = str(dtype)
    if name not in BITS:
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    size = 1 << BITS[name]
    return (0, size - 1) if name.startswith("u") else (-size // 2, size // 2 - 1)


# In and out of ONNX Runtime.


def run(session: Any, feed: Mapping[str, Any], options: Any = None) -> Sequence[Any]:
    """Runs one inference and returns every output, tensors as arrays of their own type. `options`
    are those of the run, if any."""
    outputs: Sequence[Any]
    if not _is_narrow(session, feed):
        outputs = session.run(None, dict(feed), options)
        return outputs
    values = session.run_with_ort_values(None, _as_values(feed), options)
    return [array_of(value) for value in values]


def bind_inference(session: Any, feed: Mapping[str, Any]) -> Callable[[], object]:
    """Returns a function that runs one inference, to be timed: one-time work is done before."""
    if not _is_narrow(session, feed):
        arrays = dict(feed)
        return lambda: session.run(None, arrays)
    values = _as_values(feed)
    return lambda: session.run_with_ort_values(None, values)


def array_of(value: Any) -> Any:
    """Returns the array in a value of ONNX Runtime."""
    name = _NAMES.get(value.element_type()) if value.is_tensor() else None
    if name is None:
        return value.numpy()
    dtype, shape = dtype_named(name), value.shape()
    count = int(np.prod(shape, dtype=np.int64))
    stored = np.frombuffer(_bytes_of(value), np.uint8)
    if name not in BITS:
        return stored.view(dtype).reshape(shape)
    return _unpack(stored, name, count).reshape(shape)


def value_of(array: Any) -> Any:
    """Returns the array's numbers as a value of ONNX Runtime."""
    # Whoever has a session has loaded it.
    from tunegate.models.reference.onnx_runtime import onnxruntime  # noqa: PLC0415

    make_value = onnxruntime.OrtValue

    name = str(array.dtype)
    if name not in _NUMBERS:
        return make_value.ortvalue_from_numpy(np.asarray(array, order="C"))
    value = make_value.ortvalue_from_shape_and_type(list(array.shape), _NUMBERS[name])
    content = (_pack(array, name) if name in BITS else array).tobytes()
    ctypes.memmove(value.data_ptr(), content, len(content))
    return value


def _is_narrow(session: Any, feed: Mapping[str, Any]) -> bool:
    types = [output.type.removeprefix("tensor(") for output in session.get_outputs()]
    return any(each.startswith(_AS_ONNX_RUNTIME_SAYS) for each in types) or any(
        str(getattr(array, "dtype", "")) in _NUMBERS for array in feed.values()
    )


def _as_values(feed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value_of(array) for name, array in feed.items()}


def _bytes_of(value: Any) -> bytes:
    size_bytes = value.tensor_size_in_bytes()
    return ctypes.string_at(value.data_ptr(), size_bytes) if size_bytes else b""


def _unpack(stored: Any, name: str, count: int) -> Any:
    bits = BITS[name]
    mask = (1 << bits) - 1
    parts = [stored >> shift & mask for shift in range(0, 8, bits)]
    numbers = np.stack(parts, axis=-1).reshape(-1)[:count]
    if name.startswith("float"):
        return numbers.view(dtype_named(name))
    if name.startswith("int"):
        sign = 1 << (bits - 1)
        numbers = (numbers ^ sign).astype(np.int8) - np.int8(sign)
    return numbers.astype(dtype_named(name))


def _pack(array: Any, name: str) -> Any:
    bits = BITS[name]
    flat = np.ravel(array)
    whole = flat if name.startswith("float") else flat.astype(np.int8)
    numbers = whole.view(np.uint8)
    per_byte = 8 // bits
    padded = np.zeros(-(-numbers.size // per_byte) * per_byte, np.uint8)
    padded[: numbers.size] = numbers & ((1 << bits) - 1)
    rows = padded.reshape(-1, per_byte)
    packed = np.zeros(len(rows), np.uint8)
    for place in range(per_byte):
        packed |= rows[:, place] << (place * bits)
    return packed
