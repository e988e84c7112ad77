"""The scheduled module of a model, as one shared object with a C header and its weights inside."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import tvm
from tvm import relax
from tvm.relax.backend.cpu_generic import pipeline
from tvm.support import cc

from tunegate.edges.native.c_text import c_text, header
from tunegate.edges.native.native_object import HEADER, NATIVE_OBJECT
from tunegate.edges.native.program import (
    NativeBuffer,
    NativeCall,
    NativeProgram,
    NativeTensor,
    aligned,
)
from tunegate.errors import UnsupportedModelError

_LINKED = ("-O2", "-pthread", "-lm", "-s", "-Wl,-Bsymbolic,-z,nodelete,-z,defs")
_WEIGHTS = """.section .rodata
.balign 64
.globl weight_bytes
.hidden weight_bytes
weight_bytes:
.incbin "{file}"
.section .note.GNU-stack,"",@progbits
"""


def export_native(
    module: Any, target: Any, names: tuple[Sequence[str], Sequence[str]], at: Path, compiler: str
) -> NativeProgram:
    """Writes the object and its header; `names` are those of inputs and of outputs. Raises
    UnsupportedModelError for what is not straight-line code."""
    lowered = _lowered(module, target)
    kernels = {v: f for v, f in lowered.functions.items() if isinstance(f, tvm.tirx.PrimFunc)}
    threads = int(target.attrs.get("num-cores", 1))
    program = _Straight(lowered["main"], names, threads, set(kernels)).program()
    library = tvm.tirx.build(tvm.IRModule(kernels), target=target, pipeline="default")
    at.mkdir(parents=True, exist_ok=True)
    (at / HEADER).write_text(header())
    with tempfile.TemporaryDirectory() as sources:
        _link(library, program, Path(sources), at / NATIVE_OBJECT, compiler)
    return program


def _link(library: Any, program: NativeProgram, sources: Path, made: Path, compiler: str) -> None:
    """Leaves nothing but the object behind. It shows the functions of `model.h` only, so that two
    models live in one process, and stays loaded, for its threads run its code."""
    library.write_to_file(str(sources / "kernels.o"), "o")
    (sources / HEADER).write_text(header())
    (sources / "model.c").write_text(c_text(program))
    (sources / "weights.bin").write_bytes(program.weights or b"\0")
    (sources / "weights.s").write_text(_WEIGHTS.format(file=sources.resolve() / "weights.bin"))
    (sources / "exports.map").write_text("{ global: model_*; local: *; };\n")
    cc.create_shared(
        str(made),
        [str(sources / each) for each in ("model.c", "weights.s", "kernels.o")],
        [f"-Wl,--version-script={sources / 'exports.map'}", *_LINKED],
        cc=compiler,
    )


def _lowered(module: Any, target: Any) -> Any:
    with target, tvm.transform.PassContext(opt_level=3):
        for passes in (
            pipeline.library_dispatch_passes(target),
            pipeline.legalize_passes(target),
            pipeline.dataflow_lower_passes(target),
            [relax.transform.StaticPlanBlockMemory(), relax.transform.AttachGlobalSymbol()],
        ):
            module = tvm.transform.Sequential(passes)(module)
    return module


class _Straight:
    """Reads the bindings of the main function from first to last."""

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
            self._known[var] = _buffer("input", i, var.ty.shape, var.ty.dtype)
            inputs.append(NativeTensor(name, _dtype(var.ty.dtype), self._known[var]))
        for block in self._main.body.blocks:
            for binding in block.bindings:
                self._known[binding.var] = self._value(binding.value)
        found = self._known_of(self._main.body.body)
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

    def _known_of(self, value: Any) -> Any:
        if isinstance(value, tvm.ir.GenericConst):
            return self._constant(value)
        return self._known[value] if isinstance(value, relax.Var) else self._value(value)

    def _value(self, value: Any) -> Any:
        match value:
            case relax.Var() | tvm.ir.GenericConst():
                return self._known_of(value)
            case relax.Tuple():
                return tuple(map(self._known_of, value.fields))
            case relax.TupleGetItem():
                return self._known_of(value.tuple_value)[int(value.index)]
            case relax.Call():
                return self._called(value)
            case _:
                kind = type(value).__name__
                raise UnsupportedModelError(f"a native artifact holds kernels only, not {kind}")

    def _called(self, call: Any) -> Any:
        if isinstance(call.op, tvm.ir.GlobalVar):
            if call.op not in self._kernels:
                name = call.op.name_hint
                raise UnsupportedModelError(f"a native artifact holds kernels only, not {name}")
            buffers = tuple(map(self._known_of, call.args))
            if not all(isinstance(each, NativeBuffer) for each in buffers):
                raise UnsupportedModelError(
                    f"{call.op.name_hint} has arguments that are no tensors"
                )
            self._calls.append(NativeCall(f"__tvm_ffi_{call.op.name_hint}", buffers))
            return None
        a = call.args
        match _operator(call.op):
            case "relax.memory.alloc_storage":
                return self._space(_extents(a[0])[0])
            case "relax.memory.alloc_tensor":
                return _buffer("arena", self._known[a[0]] + _number(a[1]), a[2], a[3].value)
            case "relax.builtin.alloc_tensor":
                made = _buffer("arena", 0, a[0], a[1].value)
                return _moved(made, self._space(made.size_bytes))
            case "relax.reshape":
                old = self._known_of(a[0])
                return NativeBuffer(old.place, old.at, _extents(a[1]), old.code, old.bits)
            case other:
                raise UnsupportedModelError(f"a native artifact holds kernels only, not {other}")

    def _space(self, size_bytes: int) -> int:
        at, self._arena = self._arena, self._arena + aligned(max(1, size_bytes))
        return at

    def _constant(self, value: Any) -> NativeBuffer:
        """Equal weights are kept once: an unrolled recurrence has its own at every step."""
        array = value.value.numpy()
        content = array.tobytes()
        key = (array.shape, str(value.value.dtype), sha256(content).digest())
        if key not in self._constants:
            self._weights.extend(b"\0" * (aligned(len(self._weights)) - len(self._weights)))
            self._constants[key] = _buffer("weight", len(self._weights), key[0], key[1])
            self._weights.extend(content)
        return self._constants[key]


def _buffer(place: Any, at: int, shape: Any, dtype: Any) -> NativeBuffer:
    kind = tvm.DataType(_dtype(dtype))
    return NativeBuffer(place, at, _extents(shape), int(kind.type_code), int(kind.bits))


def _moved(buffer: NativeBuffer, at: int) -> NativeBuffer:
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
