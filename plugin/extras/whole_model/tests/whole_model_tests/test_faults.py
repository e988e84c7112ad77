"""Steps that would hang, race, or compute something else are refused, and all others taken."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunegate_whole_model.stages.block_steps import contiguous, strided_steps
from tunegate_whole_model.stages.faults import faults
from tunegate_whole_model.stages.parts import StagePart
from tunegate_whole_model.stages.stage_numbers import stage_numbers
from tunegate_whole_model.stages.steps import Barrier, Run, Steps
from whole_model_tests.whole_models import BUFFERS, buffer, mutated, part, parts, random_parts

WRONG = 10_000


@pytest.mark.parametrize("steps_of", [contiguous, strided_steps])
@settings(max_examples=40)
@given(parts, st.integers(1, 7))
def test_steps_of_stages_have_no_fault(
    steps_of: type, model: tuple[StagePart, ...], count: int
) -> None:
    assert faults(model, steps_of(model, stage_numbers(model), count)) == ()


def test_ten_thousand_schedules_with_one_thing_wrong_are_refused() -> None:
    draw, refused = random.Random(7), 0
    while refused < WRONG:
        model = random_parts(draw)
        steps_of = draw.choice((contiguous, strided_steps))
        steps = steps_of(model, stage_numbers(model), draw.randint(2, 4))
        for _ in range(20):
            wrong = mutated(draw, model, steps)
            if wrong is not None:
                assert faults(model, tuple(map(tuple, wrong))), (model, wrong)
                refused += 1


@settings(max_examples=40)
@given(parts, st.integers(1, 4), st.randoms(use_true_random=False))
def test_what_is_taken_computes_the_same_in_any_order(
    model: tuple[StagePart, ...], count: int, draw: random.Random
) -> None:
    """The oracle runs each stage's shares in an order that is drawn, and compares the history of
    every buffer with that of the parts one after the other. Steps are shuffled between blocks and
    stages, so that right ones and wrong ones come."""
    steps = [list(each) for each in contiguous(model, stage_numbers(model), count)]
    for _ in range(draw.randint(0, 2)):
        one, other = draw.choice(steps), draw.choice(steps)
        if one:
            other.insert(draw.randint(0, len(other)), one.pop(draw.randrange(len(one))))
    taken = tuple(map(tuple, steps))
    if not faults(model, taken):
        assert all(_computed(model, taken, draw) == _in_turn(model) for _ in range(3))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (((Run(0, 0, 2), Barrier(0), Run(1, 0, 1)), ()), "block 1 meets the barriers"),
        (((Run(0, 0, 1), Barrier(0), Run(1, 0, 1)),), "blocks [1] of part 0 do not run exactly"),
        (((Run(0, 0, 2), Run(1, 0, 1)),), "part 1 does not wait for part 0"),
        (((Run(0, 0, 2), Barrier(0), Run(1, 0, 1), Run(7, 0, 1)),), "runs nothing that there is"),
    ],
    ids=["hang", "left-out", "race", "unknown"],
)
def test_a_fault_says_what_is_wrong(steps: tuple[Steps, ...], said: str) -> None:
    found = faults([part([0], [1], 2), part([1], [2])], steps)
    assert any(said in each for each in found), found


History = dict[int, list[object]]


def _in_turn(model: tuple[StagePart, ...]) -> History:
    found: History = {n: [] for n in range(BUFFERS)}
    for n, each in enumerate(model):
        _run(found, model, n, each.blocks)
    return found


def _computed(
    model: tuple[StagePart, ...], steps: tuple[Steps, ...], draw: random.Random
) -> History:
    """A part takes effect when the last of its blocks runs, and reads when the first does."""
    found: History = {n: [] for n in range(BUFFERS)}
    left = [each.blocks for each in model]
    stages = max(sum(isinstance(step, Barrier) for step in each) for each in steps) + 1
    for stage in range(stages):
        runs = [step for each in steps for step in _of(each, stage)]
        draw.shuffle(runs)
        for run in runs:
            left[run.part] -= len(run.blocks())
            if not left[run.part]:
                _run(found, model, run.part, model[run.part].blocks)
    return found


def _run(found: History, model: tuple[StagePart, ...], n: int, blocks: int) -> None:
    seen = tuple((m, len(found[m])) for m in range(BUFFERS) if buffer(m) in model[n].reads)
    for m in range(BUFFERS):
        if buffer(m) in model[n].writes:
            found[m].append((n, blocks, seen))


def _of(steps: Steps, stage: int) -> list[Run]:
    found, at = [], 0
    for step in steps:
        if isinstance(step, Barrier):
            at += 1
        elif at == stage:
            found.append(step)
    return found
