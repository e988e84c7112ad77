"""The variants in which runtimes of NVIDIA GPUs run a model: the settings of each candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tunegate.artifacts.candidates import LAUNCH, PRECISION
from tunegate.config import TargetConfig

GRAPH: Final = "graph"
"""Kernels are captured once as a graph, and launched together."""
TFLOAT32: Final = "tfloat32"
"""float32 products whose factors have 10 bits of mantissa."""
FLOAT16: Final = "float16"

_PRECISIONS: Final = {"": {}, "tf32": {PRECISION: TFLOAT32}, "f16": {PRECISION: FLOAT16}}


def cuda_variants(
    target: TargetConfig, more: Mapping[str, Mapping[str, str]] | None = None
) -> Mapping[str, Mapping[str, str]]:
    """Returns float32, the variants that may differ from it, and `more`; with CUDA graphs if the
    target has them."""
    launched = {LAUNCH: GRAPH} if target.cuda_graphs else {}
    every = {**_PRECISIONS, **(more or {})}
    return {name: {**settings, **launched} for name, settings in every.items()}
