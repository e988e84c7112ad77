"""Whatever the model and the number of blocks, each does its share between the barriers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunegate_whole_model.stages.block_steps import contiguous, strided_steps
from tunegate_whole_model.stages.parts import StagePart
from tunegate_whole_model.stages.stage_numbers import stage_numbers
from tunegate_whole_model.stages.steps import Barrier, Run
from whole_model_tests.whole_models import part, parts


@pytest.mark.parametrize("steps_of", [contiguous, strided_steps])
@settings(max_examples=40)
@given(parts, st.integers(1, 7))
def test_each_block_of_each_part_runs_once(
    steps_of: type, model: tuple[StagePart, ...], count: int
) -> None:
    stages = stage_numbers(model)
    steps = steps_of(model, stages, count)
    runs = [step for each in steps for step in each if isinstance(step, Run)]
    for n, one in enumerate(model):
        blocks = sorted(b for run in runs if run.part == n for b in run.blocks())
        assert blocks == list(range(one.blocks))
    barriers = [tuple(step for step in each if isinstance(step, Barrier)) for each in steps]
    assert set(barriers) == {tuple(map(Barrier, range(max(stages))))}


def test_threads_have_neighbouring_blocks() -> None:
    first, second = contiguous([part([0], [1], 5)], (0,), 2)
    assert (first, second) == ((Run(0, 0, 2),), (Run(0, 2, 5),))


def test_small_parts_of_a_stage_run_beside_each_other() -> None:
    model = [part([0], [1]), part([0], [2]), part([0], [3], 2)]
    assert contiguous(model, (0, 0, 0), 2)[1][0] == Run(1, 0, 1)
    assert [each[0] for each in strided_steps(model, (0, 0, 0), 4)] == [
        Run(0, 0, 1, 4),
        Run(1, 0, 1, 4),
        Run(2, 0, 2, 4),
        Run(2, 1, 2, 4),
    ]
