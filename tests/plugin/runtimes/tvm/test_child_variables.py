from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tunegate.config import TargetConfig
from tunegate.edges.machine.cores import default_threads
from tunegate.runtimes.tvm.child_variables import child_variables

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
