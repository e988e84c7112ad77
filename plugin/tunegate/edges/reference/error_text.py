"""The error of a runtime in one line."""

from __future__ import annotations

import re

_MAX_CHARACTERS = 300
_ONNX_RUNTIME = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : (Load model from .*? failed: ?)?(.*)", re.DOTALL
)
"""An error of it: a number, a word, maybe a file of ours, and lines of which the last is not all.
"""


def said(error: Exception) -> str:
    """Returns the message without parts about the library itself: the last line of a traceback, and
    all of ONNX Runtime's message, which puts the cause last."""
    text = _ONNX_RUNTIME.sub(lambda found: " ".join(found[2].split()), str(error))
    lines = text.strip().splitlines() or [type(error).__name__]
    return lines[-1][:_MAX_CHARACTERS]
