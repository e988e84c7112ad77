"""Finds faults in the steps of a launch: a hang, work left out or done twice, a race.

A barrier that one block does not reach hangs a GPU, and a race gives other numbers now and then. So
no steps are compiled that have not passed this check.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from tunegate_whole_model.stages.parts import StagePart, depends
from tunegate_whole_model.stages.steps import Barrier, Run, Steps


def faults(parts: Sequence[StagePart], blocks: Sequence[Steps]) -> tuple[str, ...]:
    """Returns the faults in words: with none, the steps compute what the parts do one after
    another, whichever block runs when."""
    return (
        *_barriers(blocks),
        *_work(parts, blocks),
        *_order(parts, blocks),
    )


def _barriers(blocks: Sequence[Steps]) -> Iterator[str]:
    """Yields faults unless all blocks meet the same barriers, each once and in order."""
    met = [[step.stage for step in steps if isinstance(step, Barrier)] for steps in blocks]
    wanted = list(range(max(map(len, met), default=0)))
    for block, stages in enumerate(met):
        if stages != wanted:
            yield f"block {block} meets the barriers {stages}, not {wanted}"


def _work(parts: Sequence[StagePart], blocks: Sequence[Steps]) -> Iterator[str]:
    """Yields faults unless each block of each part runs exactly once."""
    runs = [step for steps in blocks for step in steps if isinstance(step, Run)]
    for run in runs:
        if run.step < 1 or not 0 <= run.part < len(parts):
            yield f"{run} runs nothing that there is"
    for n, part in enumerate(parts):
        wrong = _not_once(part, [run for run in runs if run.part == n and run.step > 0])
        if wrong:
            yield f"blocks {sorted(wrong)[:8]} of part {n} do not run exactly once"


def _not_once(part: StagePart, runs: Sequence[Run]) -> list[int]:
    found = Counter(chain.from_iterable(run.blocks() for run in runs))
    wanted = Counter(range(part.blocks))
    return [each for each in found | wanted if found[each] != wanted[each]]


def _order(parts: Sequence[StagePart], blocks: Sequence[Steps]) -> Iterator[str]:
    """Yields faults unless a barrier lies between each part and those that wait for it."""
    first, last = _stages(len(parts), blocks)
    for later, part in enumerate(parts):
        for earlier in range(later):
            if depends(part, parts[earlier]) and last[earlier] >= first[later]:
                yield f"part {later} does not wait for part {earlier}"


def _stages(count: int, blocks: Sequence[Steps]) -> tuple[list[int], list[int]]:
    """Returns the first and the last stage in which each part runs, by the barriers before it."""
    first, last = [-1] * count, [-1] * count
    for steps in blocks:
        stage = 0
        for step in steps:
            if isinstance(step, Barrier):
                stage += 1
            elif 0 <= step.part < count:
                first[step.part] = stage if first[step.part] < 0 else min(first[step.part], stage)
                last[step.part] = max(last[step.part], stage)
    return first, last
