"""ONNX Runtime without telemetry: its builds send what they run to their maker, unless this
variable is set before they are loaded (Privacy.md of the package). Models are their owners'
business, and what a session may do is ours."""

from __future__ import annotations

import os
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# Else a model's own metadata may choose the settings of the session that measures it.
os.environ["ORT_LOAD_CONFIG_FROM_MODEL"] = "0"

import onnxruntime

__all__ = ["exact_options", "float16_tool", "onnxruntime", "quantization", "timed_options"]


def exact_options() -> onnxruntime.SessionOptions:
    """Returns settings with which sums of int8 are right on every CPU. Without VNNI, ONNX Runtime
    adds pairs of products in 16 bits by default, and they saturate."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def timed_options(threads: int) -> onnxruntime.SessionOptions:
    """Returns the settings of a session that is timed: all optimizations, one inference at a
    time."""
    options = exact_options()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def quantization() -> Any:
    """Returns the package's own tool, which no process that measures needs."""
    import onnxruntime.quantization as tool  # noqa: PLC0415

    return tool


def float16_tool() -> Any:
    """Returns the package's own converter, which no process that measures needs."""
    from onnxruntime.transformers import float16  # noqa: PLC0415

    return float16
