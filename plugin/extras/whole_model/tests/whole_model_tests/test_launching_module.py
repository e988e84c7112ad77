"""The host function launches the kernel on what the device has, and the module carries both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi

from tunegate.compiler.cuda_text import change_texts
from tunegate_whole_model.persistent.launching_module import (
    WHOLE_KERNEL,
    device_module,
    executable,
    launcher,
)
from tunegate_whole_model.stages.contexts import Context
from whole_model_tests.models import TARGET, staged, text_of, whole

ASKED = "runtime.GetDeviceAttr"
PACKED_CALL = re.compile(
    r'call_packed_lowered\("(?P<name>[\w.]+)", (?P<stack>\w+), \d+, (?P<end>\d+)\)'
)
TYPE_INDEX = 13
"""The number of TVM's for the type of a value; the result of a call stands after its arguments."""


@pytest.fixture
def launches() -> Iterator[list[tuple[Any, ...]]]:
    """Yields the list of launches on a device of seven multiprocessors."""
    found: list[tuple[Any, ...]] = []
    before = tvm.get_global_func(ASKED)
    tvm_ffi.register_global_func(ASKED, lambda *what: 7 if what == (2, 0, 7) else -1, override=True)
    tvm_ffi.register_global_func(WHOLE_KERNEL, lambda *given: found.append(given), override=True)
    yield found
    tvm_ffi.register_global_func(ASKED, before, override=True)
    tvm_ffi.registry.remove_global_func(WHOLE_KERNEL)


def test_the_grid_is_that_of_the_device(launches: list[tuple[Any, ...]]) -> None:
    program = whole("chain", 128).program
    function = launcher(program, 640, Context(3, 128)).with_attr("global_symbol", "launch")
    built = tvm.tirx.build(tvm.IRModule({"launch": function}), target=tvm.target.Target("llvm"))
    (given,), (made,) = program.inputs, program.outputs
    shapes = [(given.buffer.shape, "float32"), ((len(program.weights),), "uint8")]
    shapes += [(made.buffer.shape, "float32"), ((640,), "uint8")]
    tensors = [tvm.runtime.tensor(np.zeros(shape, kind)) for shape, kind in shapes]
    built["launch"](*tensors)
    (found,) = launches
    assert found[-2:] == (21, 128)
    x, weights, y, arena = (each.data_ptr() for each in tensors)
    assert [_address(each) for each in found[:-2]] == [x, arena, weights, y]


def test_the_result_of_each_call_is_cleared_before_it() -> None:
    """TVM does not clear that of a call within a call, and on a GPU the inner one failed."""
    function = launcher(whole("chain", 128).program, 640, Context(3, 128))
    function = function.with_attr("global_symbol", "launch")
    lowered = tvm.IRModule({"launch": function.with_attr("target", tvm.target.Target("llvm"))})
    for step in (tvm.tirx.transform.MakePackedAPI(), tvm.tirx.transform.LowerTVMBuiltin()):
        lowered = step(lowered)
    text = str(lowered)
    calls = [*PACKED_CALL.finditer(text)]
    assert [call["name"] for call in calls] == [ASKED, WHOLE_KERNEL]
    for call in calls:
        cleared = f"tvm_struct_set({call['stack']}, {call['end']}, {TYPE_INDEX}, 0)"
        assert cleared in text[: call.start()]


def _address(pointer: Any) -> int:
    return int(getattr(pointer, "value", pointer))


@pytest.mark.skipif(bool(tvm.cuda().exist), reason="a driver takes code only: tests/gpu")
def test_the_library_holds_the_kernel_and_what_launches_it(tmp_path: Path) -> None:
    model, context = whole("transformer", 128), Context(2, 128)
    stages = staged(model, "plain", 128)
    text = text_of(model, stages, context)
    kernel = device_module(text, b"", [WHOLE_KERNEL], 4, TARGET)
    assert kernel.kind == "cuda"
    built = executable(model.program, stages.arena_bytes, context, kernel, TARGET)
    calls = [line.split()[1] for line in built.as_text().splitlines() if " call " in line]
    assert calls.count("launch_whole") == 1
    assert {each for each in calls if not each.startswith("vm.")} == {"launch_whole"}
    built.export_library(str(tmp_path / "model.so"))
    assert b"tunegate_barrier()" in (tmp_path / "model.so").read_bytes()


@pytest.mark.skipif(bool(tvm.cuda().exist), reason="a driver takes code only: tests/gpu")
def test_the_compiler_is_as_it_was() -> None:
    change_texts()
    names = "tvm_callback_cuda_compile", "tvm_callback_cuda_postproc"
    before = [*map(tvm.get_global_func, names)]
    device_module("// nothing", b"", [WHOLE_KERNEL], 1, TARGET)
    for name, each in zip(names, before, strict=True):
        assert tvm.get_global_func(name).same_as(each)
