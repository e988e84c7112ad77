"""OpenVINO without telemetry: `import openvino` reports to its maker through the package
`openvino_telemetry`, but only if that can be imported."""

from __future__ import annotations

import sys

sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

import openvino

__all__ = ["openvino"]
