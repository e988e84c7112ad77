"""A model opened by ONNX Runtime as it is shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tunegate.edges.reference.onnx_runtime import onnxruntime


def opened(model: Path, threads: int, profile: Path | None = None) -> Any:
    """A session with all optimizations that runs one inference at a time; its operators' times go
    to files that begin with `profile`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
