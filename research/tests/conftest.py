"""Leaves out what trains a network where the library for it is not installed."""

from __future__ import annotations

from importlib.util import find_spec

_TRAINING = ("test_meta_training.py", "test_taught_network.py")
_MISSING = [name for name in ("jax", "optax") if find_spec(name) is None]
collect_ignore = [f"experience/network/{name}" for name in _TRAINING] if _MISSING else []


def pytest_report_header() -> str:
    return f"without {' and '.join(_MISSING)}: no network is trained" if _MISSING else ""
