"""An object that is damaged, or that says no, is an error with its file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tunegate.errors import ArtifactError
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate_whole_model.native.c_compiler import c_compiler
from tunegate_whole_model.native.loader import NativeArtifact
from tunegate_whole_model.native.native_object import NATIVE_OBJECT

DOUBLES = """
#include <stdint.h>
static int wrong;
const char* model_error(void) { return "it is negative"; }
int model_create(const char* weights, void** made) { *made = &wrong; return weights != 0; }
int model_run(void* m, const void* const* inputs, void* const* outputs) {
  const float* x = inputs[0];
  for (int i = 0; i < 3; ++i) ((float*)outputs[0])[i] = 2 * x[i];
  return x[0] < 0 || (uintptr_t)x % 64;
}
"""
ARTIFACT = ArtifactFile(
    runtime="tvm",
    file=NATIVE_OBJECT,
    inputs=(ArtifactTensor("x", (3,), "float32"),),
    outputs=(ArtifactTensor("y", (3,), "float32"),),
    threads=1,
)


@pytest.fixture
def loaded(tmp_path: Path) -> NativeArtifact:
    compiler = c_compiler()
    assert compiler is not None
    (tmp_path / "m.c").write_text(DOUBLES)
    command = [compiler, "-shared", "-fPIC", "m.c", "-o", NATIVE_OBJECT]
    subprocess.run(command, cwd=tmp_path, check=True)
    return NativeArtifact(tmp_path, ARTIFACT)


def test_it_gets_aligned_inputs_and_gives_its_outputs(loaded: NativeArtifact) -> None:
    feed = {"x": np.arange(7, dtype="float64")[1::2]}
    (output,) = loaded.run(feed)
    assert output.tolist() == [2, 6, 10]
    run = loaded.bound(feed)
    assert run() is not None
    assert loaded.operators_ms(feed, 1) == {}


def test_what_it_refuses_is_told(loaded: NativeArtifact) -> None:
    with pytest.raises(ArtifactError, match=r"libmodel.so: it is negative\."):
        loaded.run({"x": -np.ones(3, "float32")})


def test_a_file_that_is_no_object_is_told(tmp_path: Path) -> None:
    (tmp_path / NATIVE_OBJECT).write_bytes(b"not an object")
    with pytest.raises(ArtifactError, match="does not load"):
        NativeArtifact(tmp_path, ARTIFACT)
