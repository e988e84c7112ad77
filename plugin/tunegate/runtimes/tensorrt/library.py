"""TensorRT: imported here and nowhere else, with its messages kept for errors."""

from __future__ import annotations

from typing import Any

import tensorrt

__all__ = ["Log", "tensorrt"]


class Log(tensorrt.ILogger):  # type: ignore[misc]  # it carries no types
    """Keeps errors. It must live as long as what was made with it."""

    def __init__(self) -> None:
        tensorrt.ILogger.__init__(self)
        self.errors: list[str] = []

    def log(self, severity: Any, message: str) -> None:
        if severity in {tensorrt.ILogger.Severity.ERROR, tensorrt.ILogger.Severity.INTERNAL_ERROR}:
            self.errors.append(message)
