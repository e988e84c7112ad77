"""ONNX Runtime with nobody told of it: its builds send what they run to their maker, unless this variable is set before
they are loaded (Privacy.md of the package). Models are their owners' business."""

from __future__ import annotations

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime

__all__ = ["onnxruntime"]
