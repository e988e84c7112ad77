"""The threads of TVM's kernels in this process."""

import os

import tvm

from tunegate.compiler.runtime_alone import BRIEF_WAITS, thread_variables

_FAST_CORES = 1
"""The number of the faster kind of cores, where there are two."""


def use_threads(threads: int) -> None:
    """Gives the kernels of this process `threads` threads, at most as many as its first kernel had:
    TVM adds none later, and uses half of the machine's cores by itself. All may run on any core of
    this process: TVM would bind it to the machine's first."""
    os.environ.update(thread_variables(threads) | BRIEF_WAITS)
    tvm.get_global_func("runtime.config_threadpool")(_FAST_CORES, threads)
