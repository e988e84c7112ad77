"""Measures the processor time of a candidate for a GPU, step by step: no device is needed.

    python -m benchmarks.tuning.gpu_candidate_cost transformer-128 squeezenet
        [--tasks 4] [--count 4] [--arch sm_90]

Of each model the tasks that compute most, of each the candidates of the first batch. The columns
are seconds of CPU of one candidate, means: a search child finds it; a worker lowers it to CUDA C,
and NVRTC compiles the text, as TVM gives it and without the headers of CUDA's C++ library. The last
two columns are the candidates a second that 16 cores have time for, each way. The first batch of a
task also pays for its search space.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import tvm
from tvm.support import nvcc

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import heaviest
from benchmarks.kit.tables import heading, row
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.cuda_text import machine_code, without_library_headers
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.system.nvidia.cuda_toolkit import cuda_variables

_CORES = 16


class Cost(NamedTuple):
    """Seconds of CPU of one candidate."""

    found: float
    lowered: float
    as_tvm: float
    briefly: float


def main() -> None:
    options = command_line(__doc__, "models...", tasks=4, count=4, arch="sm_90")
    os.environ.update(cuda_variables())
    load_intrinsics("cuda")
    target = tvm_target(TargetConfig(name="gpu", kind="cuda", arch=options.arch))
    heading(
        "model | candidates | find, s | lower, s | compile as TVM, s | without headers, s | "
        "a second as TVM | a second without headers"
    )
    for name in options.models:
        with scratch_folder() as folder:
            costs = [
                cost
                for function in heaviest(name, folder / "m", target)[: options.tasks]
                for cost in costs_of(function, target.target, options.count)
            ]
        means = [statistics.fmean(each) for each in zip(*costs, strict=True)]
        found, lowered, *compiled = means
        rates = [_CORES / (found + lowered + each) for each in compiled]
        row(name, len(costs), *(f"{s:.2f}" for s in means), *(f"{rate:.1f}" for rate in rates))


def costs_of(function: ModelFunction, target: Any, count: int) -> list[Cost]:
    search = TaskSearch(function.workload, target, seed=1)
    seconds, proposed = timed(search.propose, count, ())
    candidates = [each for each in proposed.candidates if each.origin != "default"]
    costs = []
    for candidate in candidates:
        module = tvm.ir.load_json(candidate.module)
        lowered, built = timed(built_kernel, module, target)
        text = str(built.function.imports[0].inspect_source())
        brief = without_library_headers(text)
        assert brief is not None
        with target:
            as_tvm, _ = timed(nvcc.tvm_callback_cuda_compile, text)
            briefly, cubin = timed(machine_code, brief)
        assert cubin is not None
        costs.append(Cost(seconds / len(candidates), lowered, as_tvm, briefly))
    return costs


def timed(run: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """The seconds of CPU of this process that it took, and the answer."""
    started = time.process_time()
    answer = run(*arguments)
    return time.process_time() - started, answer


if __name__ == "__main__":
    main()
