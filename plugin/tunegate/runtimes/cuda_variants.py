"""The ways in which runtimes of NVIDIA GPUs run a model: the settings of each candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tunegate.artifacts.candidates import LAUNCH, PRECISION
from tunegate.config import TargetConfig

GRAPH: Final = "graph"
"""The launch of kernels that are captured once, and begun together."""
TFLOAT32: Final = "tfloat32"
"""Products of float32 whose factors have 10 bits of mantissa."""
FLOAT16: Final = "float16"

_PRECISIONS: Final = {"": {}, "tf32": {PRECISION: TFLOAT32}, "f16": {PRECISION: FLOAT16}}


def cuda_variants(
    target: TargetConfig, more: Mapping[str, Mapping[str, str]] | None = None
) -> Mapping[str, Mapping[str, str]]:
    """Returns float32, what is allowed to differ from it, and `more`, with CUDA graphs where the
    target has them."""
    launched = {LAUNCH: GRAPH} if target.cuda_graphs else {}
    every = {**_PRECISIONS, **(more or {})}
    return {name: {**settings, **launched} for name, settings in every.items()}
