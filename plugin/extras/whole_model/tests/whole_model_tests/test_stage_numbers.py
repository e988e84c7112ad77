"""The stage of a part is the longest path to it."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings

from tunegate_whole_model.stages.parts import StagePart, depends
from tunegate_whole_model.stages.stage_numbers import most_at_once, stage_numbers
from whole_model_tests.whole_models import part, parts


def test_two_branches_run_beside_each_other() -> None:
    model = [part([0], [1]), part([1], [2], 3), part([1], [3], 4), part([2, 3], [4])]
    assert stage_numbers(model) == (0, 1, 1, 2)
    assert most_at_once(model, stage_numbers(model)) == 7


def test_memory_that_is_used_again_separates_stages() -> None:
    assert stage_numbers([part([0], [1]), part([2], [0])]) == (0, 1)


@settings(max_examples=40)
@given(parts)
def test_a_stage_is_the_longest_way_from_a_part_that_waits_for_none(
    model: tuple[StagePart, ...],
) -> None:
    @cache
    def longest(n: int) -> int:
        ways = [longest(m) + 1 for m in range(n) if depends(model[n], model[m])]
        return max(ways, default=0)

    assert stage_numbers(model) == tuple(map(longest, range(len(model))))
