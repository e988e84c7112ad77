"""A whole model as one shared object, which a program in C loads and runs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tests.support.small_onnx import conv_model, save
from tvm import relax

from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.preparation import prepare
from tunegate_whole_model.native.export import export_native
from tunegate_whole_model.native.native_object import NATIVE_OBJECT
from tunegate_whole_model.native.program import NativeProgram

COMPILER = shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
PROGRAM = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  model* m;
  if (model_create(NULL, &m)) { puts(model_error()); return 1; }
  size_t in = model_input(0)->size_bytes, out = model_output(0)->size_bytes;
  /* One byte beyond an aligned address: any address of a caller will do. */
  char *x = (char*)malloc(in + 1) + 1, *y = (char*)malloc(out + 1) + 1;
  if (fread(x, 1, in, stdin) != in) return 2;
  const void* inputs[] = {x};
  void* outputs[] = {y};
  for (int i = 0; i < 3; ++i)
    if (model_run(m, inputs, outputs)) { puts(model_error()); return 3; }
  fwrite(y, 1, out, stdout);
  model_destroy(m);
  return 0;
}
"""


FORKS = """
import ctypes, os, signal, sys
library = ctypes.CDLL(sys.argv[1])
size = int(sys.argv[2])
made, x, y = ctypes.c_void_p(), ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)
given = (ctypes.c_void_p * 1)(ctypes.addressof(x)), (ctypes.c_void_p * 1)(ctypes.addressof(y))
threads = len(os.listdir("/proc/self/task"))
assert library.model_create(None, ctypes.byref(made)) == 0
assert library.model_run(made, *given) == 0
assert len(os.listdir("/proc/self/task")) == threads + 1
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(library.model_run(made, *given))
assert os.waitpid(child, 0)[1] == 0
"""


def _scheduled(directory: Path, threads: int) -> tuple[Any, Any]:
    model = save(conv_model(channels=8, out=16, size=14), directory / "m.onnx")
    target = tvm_target(TargetConfig(name="cpu", threads=threads)).target
    prepared = prepare(model, shapes={}, into=directory / "p", path="m.onnx")
    module = import_in_layout(prepared, target, "m.onnx", ("nhwc",))
    with target, tvm.transform.PassContext(opt_level=3):
        return with_default_schedule(module, target), target


@pytest.mark.parametrize(("threads", "whole"), [(1, False), (2, False), (2, True)])
def test_a_program_in_c_computes_what_the_virtual_machine_does(
    tmp_path: Path, threads: int, whole: bool
) -> None:
    assert COMPILER is not None
    module, target = _scheduled(tmp_path, threads)
    names = ["x"] * len(module["main"].params)
    at = tmp_path / "native"
    program = export_native(module, target, (names, ["y"]), at, COMPILER, is_whole=whole)
    x = np.random.default_rng(1).random(program.inputs[0].buffer.shape, np.float32)
    (at / "main.c").write_text(PROGRAM)
    command = [COMPILER, "main.c", NATIVE_OBJECT, "-Wl,-rpath,$ORIGIN", "-o", "program"]
    subprocess.run(command, cwd=at, check=True)
    done = subprocess.run([at / "program"], input=x.tobytes(), capture_output=True, check=True)
    machine = relax.VirtualMachine(relax.build(module, target=target), tvm.cpu())
    expected = machine["main"](tvm.runtime.tensor(x)).numpy()
    assert done.stdout == expected.tobytes()


def _native(
    at: Path,
    kinds: list[tuple[list[int], str]],
    made: Callable[..., Any],
    *,
    parallel: bool = False,
    whole: bool = False,
) -> tuple[Any, Any, NativeProgram]:
    """The module of one small function, its target, and its native program."""
    assert COMPILER is not None
    target = tvm_target(TargetConfig(name="cpu", threads=2)).target
    builder = relax.BlockBuilder()
    names = [f"x{i}" for i in range(len(kinds))]
    variables = [relax.Var(n, relax.TensorType(*k)) for n, k in zip(names, kinds, strict=True)]
    with builder.function("main", variables):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(made(*variables)))
        builder.emit_func_output(output)
    module = relax.transform.LegalizeOps()(builder.finalize())
    if parallel:
        module = tvm.IRModule({v: _parallel(f) for v, f in module.functions.items()})
    program = export_native(module, target, (names, ["y"]), at, COMPILER, is_whole=whole)
    return module, target, program


def _parallel(function: Any) -> Any:
    if not isinstance(function, tvm.tirx.PrimFunc):
        return function
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        schedule.parallel(schedule.get_loops(block)[0])
    return schedule.mod["main"]


def _output(at: Path, inputs: list[Any], like: Any, weights: Path | None = None) -> Any:
    library = ctypes.CDLL(str(at / NATIVE_OBJECT))
    library.model_error.restype = ctypes.c_char_p
    instance, found = ctypes.c_void_p(), np.zeros_like(like)
    path = None if weights is None else str(weights).encode()
    if library.model_create(path, ctypes.byref(instance)):
        raise OSError(library.model_error().decode())
    given = (ctypes.c_void_p * max(1, len(inputs)))(*(x.ctypes.data for x in inputs))
    assert library.model_run(instance, given, (ctypes.c_void_p * 1)(found.ctypes.data)) == 0
    library.model_destroy(instance)
    return found


@pytest.mark.parametrize(
    ("shape", "dtype", "made"),
    [
        ([7], "float32", lambda x: relax.op.greater(x, relax.const(0.5, "float32"))),
        ([7], "bool", relax.op.logical_not),
        ([7], "float16", lambda x: relax.op.add(x, x)),
        ([], "float32", lambda x: relax.op.add(x, x)),
        ([0], "float32", lambda x: relax.op.add(x, x)),
        ([7], "float64", relax.op.erf),
        ([7], "int64", lambda x: x),
        (None, "float32", lambda: relax.const(np.arange(7, dtype=np.float32))),
    ],
    ids=["bool-out", "bool-in", "float16", "scalar", "empty", "libm", "identity", "no-inputs"],
)
def test_tensors_of_each_kind_pass(
    tmp_path: Path, shape: list[int] | None, dtype: str, made: Callable[..., Any]
) -> None:
    kinds = [] if shape is None else [(shape, dtype)]
    module, target, _ = _native(tmp_path, kinds, made)
    inputs = [np.asarray(np.random.default_rng(1).random(s) * 2).astype(d) for s, d in kinds]
    machine = relax.VirtualMachine(relax.build(module, target=target), tvm.cpu())
    expected = machine["main"](*map(tvm.runtime.tensor, inputs)).numpy()
    assert _output(tmp_path, inputs, expected).tobytes() == expected.tobytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == [NATIVE_OBJECT, "model.h"]
    assert str(tmp_path).encode() not in (tmp_path / NATIVE_OBJECT).read_bytes()


@pytest.mark.parametrize("whole", [False, True])
def test_a_parallel_loop_runs_on_threads_and_in_a_forked_child_too(
    tmp_path: Path, whole: bool
) -> None:
    kinds = [([640, 128], "float32")]
    _, _, program = _native(
        tmp_path, kinds, lambda x: relax.op.add(x, x), parallel=not whole, whole=whole
    )
    size = program.inputs[0].buffer.size_bytes
    x = np.random.default_rng(1).random((640, 128), np.float32)
    assert np.array_equal(_output(tmp_path, [x], x), x + x)
    command = [sys.executable, "-c", FORKS, str(tmp_path / NATIVE_OBJECT), str(size)]
    subprocess.run(command, check=True, timeout=60)


def test_an_instance_that_finds_the_threads_busy_goes_through_all_stages_alone(
    tmp_path: Path,
) -> None:
    def made(x: Any) -> Any:
        return relax.op.matmul(relax.op.permute_dims(relax.op.matmul(x, x)), x)

    _native(tmp_path, [([64, 64], "float32")], made, whole=True)
    inputs = [np.random.default_rng(n).random((64, 64), np.float32) for n in range(4)]
    expected = [_output(tmp_path, [x], x).tobytes() for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(30):
            found = pool.map(lambda x: _output(tmp_path, [x], x).tobytes(), inputs)
            assert list(found) == expected


def test_two_models_of_the_same_symbols_live_in_one_process(tmp_path: Path) -> None:
    called = []
    for size in (4, 8):
        at = tmp_path / str(size)
        *_, program = _native(at, [([size], "float32")], lambda x: relax.op.add(x, x))
        called.append([call.symbol for call in program.calls])
        ctypes.CDLL(str(at / NATIVE_OBJECT), mode=ctypes.RTLD_GLOBAL)
    assert called[0] == called[1]
    for size in (4, 8):
        x = np.ones(size, np.float32)
        assert _output(tmp_path / str(size), [x], x).tolist() == [2.0] * size


def test_weights_beside_replace_those_inside(tmp_path: Path) -> None:
    constant = relax.const(np.full(4, 1.0, np.float32))
    _, _, program = _native(tmp_path, [([4], "float32")], lambda v: relax.op.add(v, constant))
    x, beside = np.ones(4, np.float32), tmp_path / "weights.bin"
    beside.write_bytes(np.full(len(program.weights) // 4, 5.0, np.float32).tobytes())
    assert _output(tmp_path, [x], x, beside).tolist() == [6.0] * 4
    beside.write_bytes(b"other")
    with pytest.raises(OSError, match="a file of weights of another model"):
        _output(tmp_path, [x], x, beside)
