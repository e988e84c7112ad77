"""ONNX Runtime without telemetry: its builds send what they run to their maker, unless this
variable is set before they are loaded (Privacy.md of the package). Models are their owners'
business, and what a session may do is ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# Else a model's own metadata may choose the settings of the session that measures it.
os.environ["ORT_LOAD_CONFIG_FROM_MODEL"] = "0"

import onnxruntime

__all__ = [
    "Opened",
    "exact_options",
    "float16_tool",
    "onnxruntime",
    "open_session",
    "quantization",
    "timed_options",
]

_EXACT = "session.x64quantprecision"
_DATA_FOLDER = "session.model_external_initializers_file_folder_path"
_WITH_COPIES = (
    f"weights share an int8 zero point, and ONNX Runtime loads no such model with {_EXACT}=1: it "
    "was run with a copy for each weight, which gives the same numbers"
)
_INEXACT = (
    f"ONNX Runtime does not load it with {_EXACT}=1: it was run without, so its int8 sums saturate "
    "on a CPU without VNNI"
)


class Opened(NamedTuple):
    """A session, and a line about how it was opened, '' where nothing stood in the way."""

    session: Any
    note: str = ""


def open_session(
    model: Path | bytes, options: onnxruntime.SessionOptions, providers: Sequence[Any], **more: Any
) -> Opened:
    """Opens a model with `exact_options`. Where ONNX Runtime cannot compute exactly as nodes share
    a constant, each gets a copy; where that does not help, without being exact. Raises what ONNX
    Runtime raises, which has no common base class."""

    def opened(given: Path | bytes) -> Any:
        what = given if isinstance(given, bytes) else str(given)
        return onnxruntime.InferenceSession(what, options, providers=list(providers), **more)

    try:
        return Opened(opened(model))
    except Exception:
        # Loads `onnx`, which a process that measures needs for nothing else.
        from tunegate.models.reference.own_constants import with_own_constants  # noqa: PLC0415

        separate = with_own_constants(model)
        if not separate:
            raise
    if isinstance(model, Path):
        options.add_session_config_entry(_DATA_FOLDER, str(model.absolute().parent))
    try:
        return Opened(opened(separate), _WITH_COPIES)
    except Exception:  # noqa: BLE001 -- whatever it was, the model as it is may still run
        options.add_session_config_entry(_EXACT, "0")
        return Opened(opened(model), _INEXACT)


def exact_options() -> onnxruntime.SessionOptions:
    """Returns settings with which sums of int8 are right on every CPU. Without VNNI, ONNX Runtime
    adds pairs of products in 16 bits by default, and they saturate."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry(_EXACT, "1")
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
