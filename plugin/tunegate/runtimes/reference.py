"""The runtime that is the reference: its times stand beside those of others in the report."""

from __future__ import annotations

from typing import Final

from tunegate.artifacts.candidates import RuntimeName

REFERENCE: Final[RuntimeName] = "onnxruntime"
