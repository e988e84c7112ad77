"""Buffers that are needed at once never share a byte, and others may."""

from __future__ import annotations

from hypothesis import given, settings

from tunegate_whole_model.stages.arena import buffers_of, moved_part, place_buffers
from tunegate_whole_model.stages.block_steps import contiguous
from tunegate_whole_model.stages.faults import faults
from tunegate_whole_model.stages.parts import Span, StagePart
from tunegate_whole_model.stages.stage_numbers import stage_numbers
from whole_model_tests.whole_models import BUFFER_BYTES, buffer, part, parts


@settings(max_examples=40)
@given(parts)
def test_stages_stay_right_where_buffers_lie_in_the_end(model: tuple[StagePart, ...]) -> None:
    stages = stage_numbers(model)
    last = [span for each in model[-1:] for span in each.writes]
    arena = place_buffers(buffers_of(model, last), model, stages, last, 4)
    moved = [moved_part(each, arena) for each in model]
    assert faults(moved, contiguous(moved, stages, 2)) == ()
    assert arena.size_bytes <= BUFFER_BYTES * len(buffers_of(model, last))


@settings(max_examples=40)
@given(parts)
def test_what_is_written_first_and_read_last_is_still_there(model: tuple[StagePart, ...]) -> None:
    """Whoever writes over a buffer before its last reader has another place in the stages."""
    stages = stage_numbers(model)
    arena = place_buffers(buffers_of(model, ()), model, stages, (), 4)
    spans = {b: Span("arena", arena.place(b.start), arena.place(b.start) + 8) for b in _all(model)}
    for one, there in spans.items():
        for other, here in spans.items():
            if one != other and there.overlaps(here):
                assert set(_life(one, model, stages)).isdisjoint(_life(other, model, stages))


def test_a_buffer_that_nobody_needs_any_more_gives_its_place() -> None:
    chain = [part([n], [n + 1], 2) for n in range(4)]
    arena = place_buffers(
        buffers_of(chain, ()), chain, stage_numbers(chain), [buffer(4)], BUFFER_BYTES
    )
    assert arena.size_bytes == 2 * BUFFER_BYTES


def test_an_output_keeps_its_place_to_the_end() -> None:
    model = [part([0], [1]), part([0], [2]), part([2], [3]), part([3], [4])]
    arena = place_buffers(
        buffers_of(model, ()), model, stage_numbers(model), [buffer(1)], BUFFER_BYTES
    )
    mine = arena.places[buffer(1).start]
    assert all(arena.places[buffer(n).start] != mine for n in (2, 3, 4))


def test_views_of_a_buffer_are_moved_with_it() -> None:
    model = [
        StagePart((0,), 1, (), (Span("arena", 64, 96), Span("arena", 80, 112))),
        StagePart((1,), 1, (Span("arena", 80, 96), Span("weight", 0, 4)), ()),
    ]
    (whole,) = buffers_of(model, ())
    assert whole == Span("arena", 64, 112)
    arena = place_buffers([whole], model, (0, 1), (), 64)
    assert moved_part(model[1], arena).reads == (Span("arena", 16, 32), Span("weight", 0, 4))


def _all(model: tuple[StagePart, ...]) -> set[Span]:
    return {span for each in model for span in (*each.reads, *each.writes)}


def _life(span: Span, model: tuple[StagePart, ...], stages: tuple[int, ...]) -> range:
    used = [s for each, s in zip(model, stages, strict=True) if span in each.reads + each.writes]
    return range(min(used), max(used) + 1)
