"""How much memory a child that runs candidates may take, and takes: a schedule can ask for any
amount."""

from __future__ import annotations

from typing import Literal

import psutil

from tunegate.edges.run_child import MEMORY_VARIABLE

_SHARE = 0.75


def memory_limit(kind: Literal["llvm", "cuda"]) -> dict[str, str]:
    """Variables for a child. The driver of a GPU maps far more than it uses, so there is no limit
    there."""
    if kind == "cuda":
        return {}
    return {MEMORY_VARIABLE: str(int(_SHARE * psutil.virtual_memory().total))}


def resident_bytes(pid: int) -> int:
    """0 for a process that is gone."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
