"""Stops pull requests that make ONNX models slower. Read `artifacts/` first, then `pipeline.py`."""

__version__ = "0.1.0"
