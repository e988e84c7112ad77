"""A lowered model as straight-line code: its kernels in order, and the places of their buffers."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import tvm
from tvm import relax

from tunegate.errors import UnsupportedModelError
from tunegate_whole_model.native.program import (
    NativeBuffer,
    NativeCall,
    NativeProgram,
    NativeTensor,
    align_up,
)

SYMBOL = "__tvm_ffi_{}"
"""TVM's name of a function in an object."""


class StraightCode:
    """Reads the bindings of the main function from first to last. Raises UnsupportedModelError for
    what is not straight-line code."""

    def __init__(
        self,
        main: Any,
        names: tuple[Sequence[str], Sequence[str]],
        threads: int,
        kernels: set[Any],
    ) -> None:
        self._main, self._names, self._threads = main, names, threads
        self._kernels = kernels
        self._known: dict[Any, Any] = {}
        self._arena, self._weights = 0, bytearray()
        self._calls: list[NativeCall] = []
        self._constants: dict[tuple[tuple[int, ...], str, bytes], NativeBuffer] = {}

    def program(self) -> NativeProgram:
        inputs = []
        for i, (var, name) in enumerate(zip(self._main.params, self._names[0], strict=True)):
            self._known[var] = native_buffer("input", i, var.ty.shape, var.ty.dtype)
            inputs.append(NativeTensor(name, _dtype(var.ty.dtype), self._known[var]))
        for block in self._main.body.blocks:
            for binding in block.bindings:
                self._known[binding.var] = self._value(binding.value)
        found = self._look_up(self._main.body.body)
        found = found if isinstance(found, tuple) else (found,)
        kind = self._main.ret_ty
        kinds = kind.fields if hasattr(kind, "fields") else [kind]
        outputs = tuple(
            NativeTensor(name, _dtype(k.dtype), b)
            for name, k, b in zip(self._names[1], kinds, found, strict=True)
        )
        return NativeProgram(
            inputs=tuple(inputs),
            outputs=outputs,
            calls=tuple(self._calls),
            arena_bytes=max(1, self._arena),
            weights=bytes(self._weights),
            threads=self._threads,
        )

    def _look_up(self, value: Any) -> Any:
        if isinstance(value, tvm.ir.GenericConst):
            return self._constant(value)
        return self._known[value] if isinstance(value, relax.Var) else self._value(value)

    def _value(self, value: Any) -> Any:
        match value:
            case relax.Var() | tvm.ir.GenericConst():
                return self._look_up(value)
            case relax.Tuple():
                return tuple(map(self._look_up, value.fields))
            case relax.TupleGetItem():
                return self._look_up(value.tuple_value)[int(value.index)]
            case relax.Call():
                return self._add_call(value)
            case _:
                kind = type(value).__name__
                raise UnsupportedModelError(f"a native artifact holds kernels only, not {kind}")

    def _add_call(self, call: Any) -> Any:
        if isinstance(call.op, tvm.ir.GlobalVar):
            if call.op not in self._kernels:
                name = call.op.name_hint
                raise UnsupportedModelError(f"a native artifact holds kernels only, not {name}")
            buffers = tuple(map(self._look_up, call.args))
            if not all(isinstance(each, NativeBuffer) for each in buffers):
                raise UnsupportedModelError(
                    f"{call.op.name_hint} has arguments that are no tensors"
                )
            self._calls.append(NativeCall(SYMBOL.format(call.op.name_hint), buffers))
            return None
        a = call.args
        match _operator(call.op):
            case "relax.memory.alloc_storage":
                return self._space(_extents(a[0])[0])
            case "relax.memory.alloc_tensor":
                return native_buffer("arena", self._known[a[0]] + _number(a[1]), a[2], a[3].value)
            case "relax.builtin.alloc_tensor":
                made = native_buffer("arena", 0, a[0], a[1].value)
                return _move(made, self._space(made.size_bytes))
            case "relax.reshape":
                old = self._look_up(a[0])
                return NativeBuffer(old.place, old.at, _extents(a[1]), old.code, old.bits)
            case other:
                raise UnsupportedModelError(f"a native artifact holds kernels only, not {other}")

    def _space(self, size_bytes: int) -> int:
        at, self._arena = self._arena, self._arena + align_up(max(1, size_bytes))
        return at

    def _constant(self, value: Any) -> NativeBuffer:
        """Returns a constant's buffer. Equal weights are stored once: an unrolled recurrence
        repeats its own at every step."""
        array = value.value.numpy()
        content = array.tobytes()
        key = (array.shape, str(value.value.dtype), sha256(content).digest())
        if key not in self._constants:
            self._weights.extend(b"\0" * (align_up(len(self._weights)) - len(self._weights)))
            self._constants[key] = native_buffer("weight", len(self._weights), key[0], key[1])
            self._weights.extend(content)
        return self._constants[key]


def native_buffer(place: Any, at: int, shape: Any, dtype: Any) -> NativeBuffer:
    kind = tvm.DataType(_dtype(dtype))
    return NativeBuffer(place, at, _extents(shape), int(kind.type_code), int(kind.bits))


def _move(buffer: NativeBuffer, at: int) -> NativeBuffer:
    return NativeBuffer(buffer.place, at, buffer.shape, buffer.code, buffer.bits)


def _dtype(dtype: Any) -> str:
    return str(getattr(dtype, "dtype", dtype))


def _extents(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(int(extent) for extent in getattr(shape, "values", shape))
    except TypeError as error:
        raise UnsupportedModelError("a native artifact has static shapes only") from error


def _operator(operator: Any) -> str:
    return str(getattr(operator, "global_symbol", None) or getattr(operator, "name", operator))


def _number(value: Any) -> int:
    return int(getattr(value, "value", value))
