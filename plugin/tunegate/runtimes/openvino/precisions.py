"""The precisions for which this processor has instructions of its own.

OpenVINO takes bfloat16 on each processor with AVX-512, and computes in float32 with conversions
where there is nothing else, so its word alone does not do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from tunegate.artifacts.candidates import FLOAT32, PRECISION, QUANTIZATION, STATIC

CPU_INFO: Final = Path("/proc/cpuinfo")
HINTS: Final[Mapping[str, str]] = {FLOAT32: "f32", "bfloat16": "bf16", "float16": "f16"}
"""What OpenVINO calls each precision. A model of int8 says where it is quantized: the rest is
float32."""

_INSTRUCTIONS: Final[Mapping[str, frozenset[str]]] = {
    "bfloat16": frozenset({"avx512_bf16", "amx_bf16"}),
    "float16": frozenset({"avx512_fp16", "amx_fp16"}),
    "int8": frozenset({"avx512_vnni", "avx_vnni", "amx_int8"}),
}
_KNOWN: Final = (
    *("avx", "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_int8", "amx_bf16", "amx_fp16"),
)
"""What a processor may have for a precision, from the oldest on."""


def variants() -> Mapping[str, Mapping[str, str]]:
    """Returns float32, and all precisions besides, by the names of variants: what a processor lacks
    is refused by name."""
    lower = {HINTS[precision]: {PRECISION: precision} for precision in ("bfloat16", "float16")}
    return {"": {}, **lower, "int8": {PRECISION: "int8", QUANTIZATION: STATIC}}


def lacking(settings: Mapping[str, str], cpu_info: Path = CPU_INFO) -> str:
    """Returns what this processor lacks for a precision, and what it has; '' where it lacks
    nothing."""
    wanted = _INSTRUCTIONS.get(settings.get(PRECISION, FLOAT32), frozenset())
    flags = frozenset(_flags(cpu_info))
    if not wanted or wanted & flags:
        return ""
    has = " ".join(each for each in _KNOWN if each in flags) or "none that are known"
    return f"the processor has none of {', '.join(sorted(wanted))} (it has {has})"


def _flags(cpu_info: Path) -> Collection[str]:
    lines = cpu_info.read_text(errors="replace").splitlines() if cpu_info.exists() else []
    flags = (line.partition(":")[2].split() for line in lines if line.startswith("flags"))
    return next(flags, [])
