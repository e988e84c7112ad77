"""Keeps compiled models fast through CI. Start reading at `artifacts/`, then `pipeline.py`."""

__version__ = "0.1.0"
