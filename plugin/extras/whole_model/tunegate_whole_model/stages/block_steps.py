"""The steps of each block of a launch: its share of every part, and a barrier after each stage."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate_whole_model.stages.parts import StagePart
from tunegate_whole_model.stages.steps import Barrier, Run, Steps


def contiguous(
    parts: Sequence[StagePart], stages: Sequence[int], workers: int
) -> tuple[Steps, ...]:
    """Returns the steps of a CPU's threads: each has neighbouring blocks of a part, which share
    cache lines. Small parts go to the thread with the least work in the stage so far."""
    found: list[list[Run | Barrier]] = [[] for _ in range(workers)]
    for stage in range(_count(stages)):
        begin = 0
        for n in _parts_of_stage(stages, stage):
            shares = min(workers, parts[n].blocks)
            for share in range(shares):
                cut = [parts[n].blocks * each // shares for each in (share, share + 1)]
                found[(begin + share) % workers].append(Run(n, *cut))
            begin += shares
        _end(found, stage, stages)
    return tuple(map(tuple, found))


def strided_steps(
    parts: Sequence[StagePart], stages: Sequence[int], grid: int
) -> tuple[Steps, ...]:
    """Returns the steps of a persistent kernel's blocks: a part begins where the one before it in
    the stage ended, so that small parts run in parallel."""
    found: list[list[Run | Barrier]] = [[] for _ in range(grid)]
    for stage in range(_count(stages)):
        begin = 0
        for n in _parts_of_stage(stages, stage):
            blocks = parts[n].blocks
            for block, steps in enumerate(found):
                first = (block - begin) % grid
                if first < blocks:
                    steps.append(Run(n, first, blocks, grid))
            begin += blocks
        _end(found, stage, stages)
    return tuple(map(tuple, found))


def _parts_of_stage(stages: Sequence[int], stage: int) -> list[int]:
    return [n for n, each in enumerate(stages) if each == stage]


def _count(stages: Sequence[int]) -> int:
    return max(stages, default=-1) + 1


def _end(blocks: Sequence[list[Run | Barrier]], stage: int, stages: Sequence[int]) -> None:
    """Adds a barrier, except after the last stage, which the launch itself ends."""
    if stage + 1 < _count(stages):
        for steps in blocks:
            steps.append(Barrier(stage))
