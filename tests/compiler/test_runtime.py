"""Builds run, and are taken apart, in processes that have no compiler."""

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support.measured_cells import make_job, make_model
from tests.support.programs import run_program
from tests.support.small_onnx import model_of, save
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler

TARGET = TargetConfig(name="cpu", threads=1)
ASKED = """
import json, sys
from pathlib import Path
import numpy as np
from tunegate.compiler.loader import TvmArtifact
from tunegate.system.output.artifact_file import ArtifactFile
at = Path(sys.argv[1])
x = np.arange(32, dtype="float32").reshape(2, 16)
values = TvmArtifact(at, ArtifactFile.read(at)).run({"x": x})
mapped = Path("/proc/self/maps").read_text()
print(json.dumps({"values": values[0].tolist(), "compiler": "libtvm_compiler" in mapped}))
"""


def sorting_model() -> onnx.ModelProto:
    """A product, and the largest three of each row: sorting is in none of TVM's core libraries."""
    weights = {"w": np.eye(16, dtype=np.float32)[::-1].copy(), "three": np.array([3])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("TopK", ["y", "three"], ["values", "places"]),
    ]
    return model_of(nodes, {"x": [2, 16]}, {"values": [2, 3]}, weights)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runtime")
    file = save(sorting_model(), directory / "m.onnx")
    job = make_job(make_model(file, target=TARGET), directory / "artifact")
    with closing(MetaScheduleCompiler(directory / "compiler", seed=1)) as compiler:
        (build,) = compiler.build([job])
    assert build.error is None, build.error
    return directory / "artifact"


@pytest.mark.parametrize("alone", ["0", "1"])
def test_the_numbers_are_the_same_with_the_compiler_and_without(artifact: Path, alone: str) -> None:
    done = run_program(
        [sys.executable, "-c", ASKED, str(artifact)],
        env={**os.environ, "TVM_USE_RUNTIME_LIB": alone},
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["values"] == [[15.0, 14.0, 13.0], [31.0, 30.0, 29.0]]
    assert found["compiler"] is (alone == "0")


def test_a_launch_and_the_times_of_kernels_need_no_compiler(artifact: Path, tmp_path: Path) -> None:
    bench = FreshProcesses(tmp_path, 1)
    assert bench.pair(artifact, artifact).launch(4).base_ms > 0
    times = bench.operators_ms(artifact)
    assert sum(times.values()) > 0
    assert not [name for name in times if name.startswith("vm.builtin")]


IMPORTED = """
import json, os, sys
from pathlib import Path
import tvm_ffi.core as core
asked, before = [], core._object_type_key_to_index
def ask(key):
    asked.append((key, before(key)))
    return asked[-1][1]
core._object_type_key_to_index = ask
from tunegate.compiler.runtime_alone import import_runtime, set_threads
set_threads(3)
import_runtime()
print(json.dumps({
    "has_compiler": "libtvm_compiler" in Path("/proc/self/maps").read_text(),
    "threads": os.environ["TVM_NUM_THREADS"],
    "asked": len(asked),
    "unknown": [key for key, index in asked if index is None],
    "is_as_before": core._object_type_key_to_index is ask,
    "tensor": sys.modules["tvm"].runtime.tensor([1.5]).numpy().tolist(),
}))
"""


def test_types_of_the_compiler_are_not_asked_for_and_all_else_is_as_ever() -> None:
    found = json.loads(run_program([sys.executable, "-c", IMPORTED], check=True).stdout)
    assert found.pop("asked") > 0
    assert found == {
        "has_compiler": False,
        "threads": "3",
        "unknown": [],
        "is_as_before": True,
        "tensor": [1.5],
    }
