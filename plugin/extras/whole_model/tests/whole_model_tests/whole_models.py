"""Models as parts, and schedules of them with one thing wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from tunegate_whole_model.stages.parts import Span, StagePart, depends
from tunegate_whole_model.stages.steps import Barrier, Run, Steps

BUFFERS = 6
BUFFER_BYTES = 8
Schedule = list[list[Run | Barrier]]


def part(
    reads: Sequence[int], writes: Sequence[int], blocks: int = 1, kernel: int = 0
) -> StagePart:
    """One that has to do with these buffers, by number."""
    return StagePart(
        kernels=(kernel,),
        blocks=blocks,
        reads=tuple(buffer(n) for n in sorted(reads)),
        writes=tuple(buffer(n) for n in sorted(writes)),
    )


def buffer(number: int) -> Span:
    return Span("arena", number * BUFFER_BYTES, (number + 1) * BUFFER_BYTES)


numbers = st.sets(st.integers(0, BUFFERS - 1), max_size=3)
parts = st.lists(
    st.builds(part, numbers, numbers.filter(bool), st.integers(1, 9)), min_size=1, max_size=6
).map(tuple)


def random_parts(draw: random.Random) -> tuple[StagePart, ...]:
    """A model in which each part reads what the one before it wrote, or what an earlier one did."""
    return tuple(
        part(draw.sample(range(n), min(n, 2)), [n], draw.randint(1, 9))
        for n in range(draw.randint(2, 7))
    )


def mutated(
    draw: random.Random, parts: Sequence[StagePart], steps: Sequence[Steps]
) -> Schedule | None:
    """The schedule with one thing changed that makes it wrong; None where this change cannot be
    made here."""
    schedule = [list(each) for each in steps]
    return draw.choice(MUTATIONS)(draw, parts, schedule)


def _misses_a_barrier(
    draw: random.Random, _: Sequence[StagePart], found: Schedule
) -> Schedule | None:
    at = _draw_step(draw, found, Barrier)
    if at is None or len(found) == 1:
        return None
    del found[at[0]][at[1]]
    return found


def _misses_a_share(
    draw: random.Random, _: Sequence[StagePart], found: Schedule
) -> Schedule | None:
    at = _draw_step(draw, found, Run)
    if at is not None:
        del found[at[0]][at[1]]
    return found


def _runs_twice(draw: random.Random, _: Sequence[StagePart], found: Schedule) -> Schedule | None:
    at = _draw_step(draw, found, Run)
    if at is not None:
        draw.choice(found).append(found[at[0]][at[1]])
    return found


def _runs_beyond(draw: random.Random, _: Sequence[StagePart], found: Schedule) -> Schedule | None:
    at = _draw_step(draw, found, Run)
    step = found[at[0]][at[1]] if at is not None else None
    if at is None or not isinstance(step, Run):
        return None
    found[at[0]][at[1]] = Run(step.part, step.first, step.stop + step.step, step.step)
    return found


def _merges_stages(draw: random.Random, _: Sequence[StagePart], found: Schedule) -> Schedule | None:
    barriers = [step.stage for step in found[0] if isinstance(step, Barrier)]
    if not barriers:
        return None
    gone = draw.choice(barriers)
    return [
        [
            Barrier(step.stage - (step.stage > gone)) if isinstance(step, Barrier) else step
            for step in steps
            if step != Barrier(gone)
        ]
        for steps in found
    ]


def _swaps_barriers(
    draw: random.Random, _: Sequence[StagePart], found: Schedule
) -> Schedule | None:
    steps = draw.choice(found)
    places = [n for n, step in enumerate(steps) if isinstance(step, Barrier)]
    if len(places) < 2:
        return None
    one, other = draw.sample(places, 2)
    steps[one], steps[other] = steps[other], steps[one]
    return found


def _runs_late(draw: random.Random, parts: Sequence[StagePart], found: Schedule) -> Schedule | None:
    """A share of a part runs after those that wait for it."""
    at = _draw_step(draw, found, Run)
    step = found[at[0]][at[1]] if at is not None else None
    if at is None or not isinstance(step, Run):
        return None
    if not any(depends(later, parts[step.part]) for later in parts[step.part + 1 :]):
        return None
    found[at[0]].append(found[at[0]].pop(at[1]))
    return found


MUTATIONS: tuple[Callable[[random.Random, Sequence[StagePart], Schedule], Schedule | None], ...] = (
    _misses_a_barrier,
    _misses_a_share,
    _runs_twice,
    _runs_beyond,
    _merges_stages,
    _swaps_barriers,
    _runs_late,
)


def _draw_step(
    draw: random.Random, found: Schedule, kind: type[Run | Barrier]
) -> tuple[int, int] | None:
    places = [
        (block, n)
        for block, steps in enumerate(found)
        for n, step in enumerate(steps)
        if isinstance(step, kind)
    ]
    return draw.choice(places) if places else None
