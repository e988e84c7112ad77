"""Which decision makes which loop, read from a sketch's own instructions."""

from __future__ import annotations

import json

from tunegate.tune.loop_nest import LoopNest, nest_of

TILED = [
    ["GetSBlock", [], [0], 1],  # @0
    ["GetLoops", ["@0"], [], 2],  # @1, @2
    ["SamplePerfectTile", ["@1"], [2, 64], 2],  # @3, @4
    ["Split", ["@1", "@3", "@4"], [1, 0], 2],  # @5, @6
    ["SamplePerfectTile", ["@2"], [2, 64], 2],  # @7, @8
    ["Split", ["@2", "@7", "@8"], [1, 0], 2],  # @9, @10
    ["Reorder", ["@5", "@9", "@6", "@10"], [], 0],
    ["ReverseComputeAt", ["@0", "@10"], [1], 0],
    ["SampleCategorical", [], [[0, 16, 64], [0.3, 0.3, 0.4]], 1],  # @11
    ["Annotate", ["@0", "@11"], ["meta_schedule.unroll_explicit"], 0],
]


def test_loops_are_named_by_the_decision_and_the_level_that_make_them() -> None:
    assert nest_of(json.dumps(TILED)) == LoopNest(
        order=((0, 0), (1, 0), (0, 1), (1, 1)), copied_at=1, unrolled_by=2, unrolls=(0, 16, 64)
    )


def test_the_order_of_the_block_with_the_most_loops_counts() -> None:
    smaller = ["Reorder", ["@9", "@5"], [], 0]
    nest = nest_of(json.dumps([*TILED, smaller]))
    assert nest is not None
    assert nest.order == ((0, 0), (1, 0), (0, 1), (1, 1))


def test_a_split_by_numbers_decides_nothing() -> None:
    fixed = [
        ["GetLoops", ["b"], [], 1],
        ["Split", ["@0", 4, 8], [1, 0], 2],
        ["Reorder", ["@1"], [], 0],
    ]
    assert nest_of(json.dumps(fixed)) is None


def test_a_sketch_that_tiles_nothing_has_no_nest() -> None:
    assert nest_of(json.dumps([["SampleCategorical", [], [[0, 16], [0.5, 0.5]], 1]])) is None
    assert nest_of("[]") is None


def test_axes_that_are_summed_over_have_fewer_levels() -> None:
    order = ((0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (0, 2), (1, 2), (2, 1), (0, 3), (1, 3))
    assert LoopNest(order).spatial == (0, 1)
    assert LoopNest(order).reduced == (2,)
