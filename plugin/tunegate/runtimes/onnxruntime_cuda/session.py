"""A session of ONNX Runtime on the device, which is there or an error.

Left alone, ONNX Runtime opens a session on the CPU where the libraries of CUDA cannot be loaded,
and runs operators there that the provider does not have; it says so in a log at most.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunegate.edges.reference.onnx_runtime import onnxruntime, timed_options
from tunegate.errors import UnsupportedModelError
from tunegate.runtimes.onnxruntime_cuda.provider import CUDA, provider_options

_CPU = "CPUExecutionProvider"
_RECORD = "session.record_ep_graph_assignment_info"
_NO_DEVICE = (
    "the CUDA provider does not start: its libraries (CUDA, cuDNN) or a device are missing. Run "
    "nvidia-smi, and pip install 'onnxruntime-gpu[cuda,cudnn]'"
)


def opened_on_device(
    model: Path,
    settings: Mapping[str, str],
    threads: int,
    profile: Path | None = None,
    optimized: Path | None = None,
) -> Any:
    """Opens a session with all optimizations; its operators' times go to files that begin with
    `profile`, and the graph that it runs to `optimized`. Raises UnsupportedModelError where the
    device does not take it."""
    options = timed_options(threads)
    options.add_session_config_entry(_RECORD, "1")
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
    # What it loads is told on the standard output.
    with contextlib.redirect_stdout(sys.stderr):
        onnxruntime.preload_dlls()
        session = onnxruntime.InferenceSession(
            str(model),
            options,
            providers=[(CUDA, provider_options(settings)), _CPU],
            enable_fallback=0,
        )
    require_device(session.get_providers())
    return session


def require_device(providers: list[str]) -> None:
    """Raises UnsupportedModelError where the session runs on the CPU alone."""
    if CUDA not in providers:
        raise UnsupportedModelError(_NO_DEVICE)
