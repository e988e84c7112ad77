"""The parts of a model, and the order in which they wait."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tunegate_whole_model.stages.parts import Span, StagePart, depends, join_neighbours
from whole_model_tests.whole_models import part, parts


@pytest.mark.parametrize(
    ("earlier", "later", "waits"),
    [
        (([0], [1]), ([1], [2]), True),
        (([0], [1]), ([2], [0]), True),
        (([0], [1]), ([2], [1]), True),
        (([0], [1]), ([0], [2]), False),
    ],
    ids=["reads", "overwrites-what-is-read", "overwrites", "both-read"],
)
def test_a_part_waits_where_one_of_two_writes(
    earlier: tuple[list[int], list[int]], later: tuple[list[int], list[int]], waits: bool
) -> None:
    assert depends(part(*later), part(*earlier)) is waits


def test_bytes_of_another_place_do_not_meet() -> None:
    assert not Span("arena", 0, 8).overlaps(Span("input", 0, 8))
    assert not Span("arena", 0, 8).overlaps(Span("arena", 8, 16))
    assert Span("arena", 0, 8).overlaps(Span("arena", 7, 16))


def test_a_chain_of_single_blocks_is_one_part() -> None:
    chain = [part([n], [n + 1], kernel=n) for n in range(3)]
    (found,) = join_neighbours(chain)
    assert found.kernels == (0, 1, 2)
    assert len(join_neighbours([chain[0], part([4], [5])])) == 2
    assert len(join_neighbours([chain[0], part([1], [2], blocks=2)])) == 2


@settings(max_examples=40)
@given(parts)
def test_joining_loses_no_kernel_and_no_buffer(given_parts: tuple[StagePart, ...]) -> None:
    found = join_neighbours(given_parts)
    assert sum(len(each.kernels) for each in found) == len(given_parts)
    for spans in ("reads", "writes"):
        kept = {span for each in found for span in getattr(each, spans)}
        assert kept == {span for each in given_parts for span in getattr(each, spans)}
