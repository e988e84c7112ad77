"""What the kernels of a compiled part take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tvm

from tunegate.compiler.loader import kernels_ms
from tunegate.compiler.runtime import arguments_of
from tunegate_hybrid.plan_file import PlannedPart


def part_kernels_ms(
    library: Path, part: PlannedPart, feed: Mapping[str, Any], inferences: int
) -> dict[str, float]:
    """Returns the medians by the names of layers."""
    device = tvm.cpu()
    arguments = arguments_of(part.inputs, feed, device)
    return kernels_ms(library, part.tasks, device, arguments, inferences)
