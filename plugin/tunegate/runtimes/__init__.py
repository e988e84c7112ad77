"""Runtimes that can run a model: one folder for each, and their protocol in `runtime.py`."""
