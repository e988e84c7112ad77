from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tunegate.config import TargetConfig
from tunegate.runtimes.tvm.compile_requests import child_variables
from tunegate.system.machine.cores import default_threads

ASKS = "import tvm; print(tvm.get_global_func('runtime.NumThreads')())"


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_kernels_get_the_targets_threads(threads: int) -> None:
    """TVM by itself would take half of the cores."""
    variables = child_variables(TargetConfig(name="cpu", threads=threads))
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == min(threads or default_threads(), os.cpu_count() or 1)


def test_threads_do_not_wait_awake_while_onnx_runtime_computes() -> None:
    """A tenth of a second is TVM's own."""
    assert child_variables(TargetConfig(name="cpu"))["TVM_THREAD_POOL_SPIN_COUNT"] == "1000"
