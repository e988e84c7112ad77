"""The stages of a whole model.

Zhuang et al. ("MonoNN", OSDI 2024) merge the barriers between the kernels of a model this way: the
stage of a kernel is the longest path to it from the inputs, each edge counting one. Kernels of a
stage run in parallel, and one barrier separates two stages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tunegate_whole_model.stages.parts import StagePart, depends


def stage_numbers(parts: Sequence[StagePart]) -> tuple[int, ...]:
    """Returns the stage of each part, from 0 on. A part that overwrites what an earlier one reads
    or writes waits for it, as does one that reads what it has written."""
    found: list[int] = []
    for n, part in enumerate(parts):
        waits = (found[m] for m in range(n) if depends(part, parts[m]))
        found.append(max(waits, default=-1) + 1)
    return tuple(found)


def most_at_once(parts: Sequence[StagePart], stages: Sequence[int]) -> int:
    """Returns the most blocks of a stage: more threads would only wait."""
    counts = Counter[int]()
    for part, stage in zip(parts, stages, strict=True):
        counts[stage] += part.blocks
    return max(counts.values(), default=1)
