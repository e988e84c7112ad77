"""The module that launches a persistent kernel, for TVM's virtual machine: its main function calls
one host function, which launches as many blocks as the device holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import PointerType, PrimType
from tvm.relax import TensorType
from tvm.relax.backend.cuda import pipeline

from tunegate.compiler.schedules.unscheduled import IS_SCHEDULED
from tunegate_whole_model.native.program import NativeProgram
from tunegate_whole_model.stages.contexts import Context

WHOLE_KERNEL = "tunegate_whole"
_CUDA, _DEVICE, _MULTIPROCESSORS = 2, 0, 7
"""A kind of device, the device of an inference, and the attribute for its number of
multiprocessors."""
_LAUNCH = "launch_whole"
_TAGS = ("blockIdx.x", "threadIdx.x", "tirx.use_cooperative_launch")
"""A cooperative launch fails at once if the device has no room for it."""


def executable(
    program: NativeProgram, arena_bytes: int, context: Context, kernel: Any, target: Any
) -> Any:
    """Returns the virtual machine's program; `kernel` is of `device_module`."""
    module = launching_module(program, arena_bytes, context)
    passes = (*pipeline.dataflow_lower_passes(target), *pipeline.finalize_passes(target))
    with target, tvm.transform.PassContext(opt_level=3):
        built = module.with_attr("external_mods", [kernel])
        return relax.build(built, target=target, relax_pipeline=tvm.transform.Sequential(passes))


def device_module(text: str, cubin: bytes, names: Sequence[str], pointers: int, target: Any) -> Any:
    """Returns a TVM module with these kernels, each of which takes so many pointers. Without a CUDA
    driver TVM keeps the text, as with all kernels."""
    kernels = {name: _declare(name, pointers, target) for name in names}
    with _use_compiled(text, cubin):
        return tvm.get_global_func("target.build.cuda")(tvm.IRModule(kernels), target)


def launching_module(program: NativeProgram, arena_bytes: int, context: Context) -> Any:
    """Returns the main function and the host function that it calls, which takes inputs, weights,
    outputs and the arena."""
    inputs = [TensorType(each.buffer.shape, each.dtype) for each in program.inputs]
    outputs = [TensorType(each.buffer.shape, each.dtype) for each in program.outputs]
    weights = np.frombuffer(program.weights or b"\0", np.uint8)
    builder = relax.BlockBuilder()
    given = [relax.Var(f"input_{n}", kind) for n, kind in enumerate(inputs)]
    with builder.function("main", given):
        launch = builder.add_func(launcher(program, arena_bytes, context), _LAUNCH)
        with builder.dataflow():
            arguments = [*given, relax.const(weights, "uint8")]
            kinds = [*outputs, TensorType((arena_bytes,), "uint8")]
            made = builder.emit(relax.call_tir(launch, arguments, kinds))
            taken = [builder.emit(relax.TupleGetItem(made, n)) for n in range(len(outputs))]
            found = builder.emit_output(relax.Tuple(taken) if len(taken) > 1 else taken[0])
        builder.emit_func_output(found)
    return builder.get()


def launcher(program: NativeProgram, arena_bytes: int, context: Context) -> Any:
    """Returns the host function. The grid is that of the device on which it runs."""
    inputs, outputs = (
        [
            tirx.decl_buffer(each.buffer.shape, each.dtype, f"{name}_{n}")
            for n, each in enumerate(tensors)
        ]
        for name, tensors in (("input", program.inputs), ("output", program.outputs))
    )
    weights = tirx.decl_buffer((max(1, len(program.weights)),), "uint8", "weights")
    arena = tirx.decl_buffer((arena_bytes,), "uint8", "arena")
    # A statement of its own: TVM leaves the result of a call within a call uninitialized, and
    # TVM-FFI refuses what it finds there.
    count = tirx.Var("multiprocessors", "int32")
    asked = tirx.call_packed("runtime.GetDeviceAttr", _CUDA, _DEVICE, _MULTIPROCESSORS)
    pointers = (each.data for each in (*inputs, arena, weights, *outputs))
    call = tirx.call_packed(WHOLE_KERNEL, *pointers, count * context.blocks_each, context.threads)
    body = tirx.SeqStmt([tirx.Bind(count, asked), tirx.Evaluate(call)])
    made = tirx.PrimFunc([*inputs, weights, *outputs, arena], body)
    return made.with_attr(IS_SCHEDULED, True).with_attr("tirx.noalias", True)


def _declare(name: str, pointers: int, target: Any) -> Any:
    kind = PointerType(PrimType("void"), "global")
    made = tirx.PrimFunc([tirx.Var(f"p{n}", kind) for n in range(pointers)], tirx.Evaluate(0))
    attributes = {
        "target": target,
        "global_symbol": name,
        "calling_conv": 2,  # a kernel's
        "tirx.is_global_func": True,
        "tirx.kernel_launch_params": list(_TAGS),
    }
    for key, value in attributes.items():
        made = made.with_attr(key, value)
    return made


@contextmanager
def _use_compiled(text: str, cubin: bytes) -> Iterator[None]:
    """Replaces TVM's functions for a module's text and code. They are global to the process; a
    child builds one model at a time."""
    ours: dict[str, Any] = {
        "tvm_callback_cuda_postproc": lambda _code, _target: text,
        "tvm_callback_cuda_compile": lambda _code: bytearray(cubin),
    }
    before = {name: tvm.get_global_func(name, allow_missing=True) for name in ours}
    try:
        for name, function in ours.items():
            tvm_ffi.register_global_func(name, function, override=True)
        yield
    finally:
        for name, function in before.items():
            if function is None:
                tvm_ffi.registry.remove_global_func(name)
            else:
                tvm_ffi.register_global_func(name, function, override=True)
