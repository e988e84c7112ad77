"""The precisions for which this processor has instructions of its own.

OpenVINO takes bfloat16 on each processor with AVX-512, and computes in float32 with conversions
where there is nothing else, so its word alone does not do.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tunegate.artifacts.candidates import FLOAT32, PRECISION, QUANTIZATION, STATIC
from tunegate.edges.machine.cpu_flags import CPU_INFO, lacks_any

HINTS: Final[Mapping[str, str]] = {FLOAT32: "f32", "bfloat16": "bf16", "float16": "f16"}
"""OpenVINO's names of precisions. A model of int8 says where it is quantized: the rest is
float32."""

QUANTIZER: Final = "quantizer"
"""The setting for the tool that quantizes: ONNX Runtime's without it."""
OWN: Final = "nncf"
"""The tool of OpenVINO's makers."""

_INSTRUCTIONS: Final[Mapping[str, frozenset[str]]] = {
    "bfloat16": frozenset({"avx512_bf16", "amx_bf16"}),
    "float16": frozenset({"avx512_fp16", "amx_fp16"}),
    "int8": frozenset({"avx512_vnni", "avx_vnni", "amx_int8"}),
}


def variants() -> Mapping[str, Mapping[str, str]]:
    """Returns float32, and all precisions besides, by the names of variants: what a processor lacks
    is refused by name."""
    lower = {HINTS[precision]: {PRECISION: precision} for precision in ("bfloat16", "float16")}
    int8 = {PRECISION: "int8", QUANTIZATION: STATIC}
    return {"": {}, **lower, "int8": int8, f"int8.{OWN}": {**int8, QUANTIZER: OWN}}


def lacking(settings: Mapping[str, str], cpu_info: Path = CPU_INFO) -> str:
    """Returns what this processor lacks for a precision, and what it has; '' where it lacks
    nothing."""
    return lacks_any(_INSTRUCTIONS.get(settings.get(PRECISION, FLOAT32), ()), cpu_info)
