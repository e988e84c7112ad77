"""A whole model as one shared object, which a program in C loads and runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.support.small_onnx import conv_model, save
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.import_in_layout import import_in_layout
from tunegate.edges.metaschedule.native.export import NATIVE_OBJECT, export_native
from tunegate.edges.metaschedule.passes.default_schedule import with_default_schedule
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.models.preparation import prepare
from tunegate.errors import UnsupportedModelError

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


def _scheduled(directory: Path, threads: int) -> tuple[Any, Any]:
    model = save(conv_model(channels=8, out=16, size=14), directory / "m.onnx")
    target = tvm_target(TargetConfig(name="cpu", threads=threads)).target
    prepared = prepare(model, shapes={}, into=directory / "p", path="m.onnx")
    module = import_in_layout(prepared, target, "m.onnx", ("nhwc",))
    with target, tvm.transform.PassContext(opt_level=3):
        return with_default_schedule(module, target), target


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_in_c_computes_what_the_virtual_machine_does(
    tmp_path: Path, threads: int
) -> None:
    assert COMPILER is not None
    module, target = _scheduled(tmp_path, threads)
    names = ["x"] * len(module["main"].params)
    at = tmp_path / "native"
    program = export_native(module, target, (names, ["y"]), at, COMPILER)
    x = np.random.default_rng(1).random(program.inputs[0].buffer.shape, np.float32)
    (at / "main.c").write_text(PROGRAM)
    command = [COMPILER, "main.c", NATIVE_OBJECT, "-Wl,-rpath,$ORIGIN", "-o", "program"]
    subprocess.run(command, cwd=at, check=True)
    done = subprocess.run([at / "program"], input=x.tobytes(), capture_output=True, check=True)
    machine = relax.VirtualMachine(relax.build(module, target=target), tvm.cpu())
    expected = machine["main"](tvm.runtime.tensor(x)).numpy()
    assert done.stdout == expected.tobytes()


def test_a_model_that_calls_anything_but_kernels_is_refused(tmp_path: Path) -> None:
    assert COMPILER is not None
    target = tvm_target(TargetConfig(name="cpu", threads=1)).target
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([4], "float32"))
    with builder.function("main", [x]):
        kind = relax.TensorType([4], "float32")
        called = relax.call_dps_packed("elsewhere", [x], kind)
        builder.emit_func_output(builder.emit(called))
    with pytest.raises(UnsupportedModelError, match="kernels only, not elsewhere"):
        export_native(builder.finalize(), target, (["x"], ["y"]), tmp_path, COMPILER)
