"""ONNX Runtime with nobody told of it: its builds send what they run to their maker, unless this
variable is set before they are loaded (Privacy.md of the package). Models are their owners'
business, and what a session may do is ours."""

from __future__ import annotations

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
# Else a model's own metadata may choose the settings of the session that measures it.
os.environ["ORT_LOAD_CONFIG_FROM_MODEL"] = "0"

import onnxruntime

__all__ = ["onnxruntime"]
