"""The variables of a process that builds for a target, and times what it has built."""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.config import TargetConfig
from tunegate.edges.machine.cores import default_threads
from tunegate.edges.metaschedule.runtime_alone import BRIEF_WAITS, thread_variables
from tunegate.edges.nvidia.cuda_toolkit import cuda_variables


def child_variables(target: TargetConfig) -> Mapping[str, str]:
    """TVM by itself would give kernels half of the machine's cores as threads, whatever the target
    has, and bind the first to the machine's first core, whatever we may use. They are timed in turn
    with ONNX Runtime, so they must not wait awake while that computes."""
    return {
        **(cuda_variables() if target.kind == "cuda" else {}),
        **thread_variables(target.threads or default_threads()),
        **BRIEF_WAITS,
    }
