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
}
_INT8_INSTRUCTIONS: Final = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})


def offered_variants(cpu_info: Path = CPU_INFO) -> Mapping[str, Mapping[str, str]]:
    """Returns float32, and what the processor has besides, by the names of variants."""
    flags = _flags(cpu_info)
    found: dict[str, Mapping[str, str]] = {"": {}}
    for precision, instructions in _INSTRUCTIONS.items():
        if not instructions.isdisjoint(flags):
            found[HINTS[precision]] = {PRECISION: precision}
    if not _INT8_INSTRUCTIONS.isdisjoint(flags):
        found["int8"] = {PRECISION: "int8", QUANTIZATION: STATIC}
    return found


def _flags(cpu_info: Path) -> Collection[str]:
    lines = cpu_info.read_text(errors="replace").splitlines() if cpu_info.exists() else []
    flags = (line.partition(":")[2].split() for line in lines if line.startswith("flags"))
    return next(flags, [])
