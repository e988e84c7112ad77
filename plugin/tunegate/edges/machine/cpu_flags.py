"""The processor's features for precisions below float32, by Linux's own names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

CPU_INFO: Final = Path("/proc/cpuinfo")
_KNOWN: Final = (
    *("avx", "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
)
"""Features of processors for a precision, oldest first."""


def lacks_any(wanted: Collection[str], cpu_info: Path = CPU_INFO) -> str:
    """Says that the processor has none of these, and what it has; '' where it has one."""
    flags = _flags(cpu_info)
    if not wanted or flags & {*wanted}:
        return ""
    return f"the processor has none of {', '.join(sorted(wanted))} ({_has(flags)})"


def lacks_some(wanted: Collection[str], cpu_info: Path = CPU_INFO) -> str:
    """Says which of these the processor lacks, and what it has; '' where it has all."""
    flags = _flags(cpu_info)
    missing = sorted({*wanted} - flags)
    return f"the processor lacks {', '.join(missing)} ({_has(flags)})" if missing else ""


def _has(flags: Collection[str]) -> str:
    return f"it has {' '.join(each for each in _KNOWN if each in flags) or 'none that are known'}"


def _flags(cpu_info: Path) -> frozenset[str]:
    lines = cpu_info.read_text(errors="replace").splitlines() if cpu_info.exists() else []
    flags = (line.partition(":")[2].split() for line in lines if line.startswith("flags"))
    return frozenset(next(flags, []))
