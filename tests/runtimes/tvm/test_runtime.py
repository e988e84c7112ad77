from __future__ import annotations

import subprocess
import sys

from tunegate.config import TargetConfig
from tunegate.runtimes.tvm.health import PINNED
from tunegate.runtimes.tvm.runtime import RUNTIME


def test_it_runs_on_all_targets_and_on_cpus_in_narrow_numbers_too() -> None:
    cpu, gpu = TargetConfig(name="a"), TargetConfig(name="b", kind="cuda", arch="sm_90")
    assert RUNTIME.unsupported(cpu) == RUNTIME.unsupported(gpu) == ""
    assert RUNTIME.variants(cpu) == {
        "": {},
        "bf16": {"precision": "bfloat16"},
        "int8.dynamic": {"precision": "int8"},
    }
    assert RUNTIME.variants(gpu)[""] == {}
    assert "bf16" not in RUNTIME.variants(gpu)


def test_its_versions_are_those_that_work() -> None:
    assert RUNTIME.versions() == PINNED
    assert RUNTIME.toolchain().tvm == PINNED["apache-tvm"]


def test_to_know_of_it_loads_no_compiler() -> None:
    program = (
        "import sys; from tunegate.runtimes.tvm.runtime import RUNTIME;"
        "RUNTIME.versions(); RUNTIME.toolchain(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"tvm", "tvm_ffi", "onnxruntime", "xgboost"} & set(done.stdout.split())
