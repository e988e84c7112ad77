"""A part of a model under ONNX Runtime, beside others in the same process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tunegate.models.reference.onnx_runtime import onnxruntime, open_session, timed_options


def opened_part(file: Path, threads: int) -> Any:
    """Returns a session for a part. Between its inferences its threads rest: others need the
    cores."""
    options = timed_options(threads)
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return open_session(file, options, ["CPUExecutionProvider"]).session


def reference_version() -> dict[str, str]:
    """Returns ONNX Runtime's version by its name, for what an artifact says of its making."""
    return {onnxruntime.__name__: str(onnxruntime.__version__)}
