"""A session of ONNX Runtime, as models are shipped and measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tunegate.edges.reference.onnx_runtime import onnxruntime, timed_options

_ERRORS = 3


def opened(
    model: Path, threads: int, profile: Path | None = None, optimized: Path | None = None
) -> Any:
    """Opens a session with all optimizations, one inference at a time; its operators' times go to
    files that begin with `profile`, and the graph that it runs to `optimized`."""
    options = timed_options(threads)
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
        options.log_severity_level = _ERRORS  # a graph of this machine is no news here
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
