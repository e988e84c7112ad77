from __future__ import annotations

import pytest

from tunegate.artifacts.changes import ModelInput
from tunegate.review.input_shapes import ResolvedShapes, ShapeLevel, resolve_shapes, symbols_of

IDS = ModelInput("ids", (None, None), ("batch", "seq"))
MASK = ModelInput("mask", (None, None), ("batch", "seq"))
IMAGE = ModelInput("image", (None, 3, None), ("", "", "?"))
STATIC = ModelInput("x", (1, 4))


def resolved(*levels: ShapeLevel, inputs: tuple[ModelInput, ...] = (IDS, MASK)) -> ResolvedShapes:
    return resolve_shapes(inputs, levels)


def test_a_size_by_symbol_is_that_of_every_input() -> None:
    found = resolved(ShapeLevel(dims={"batch": 2, "seq": 8, "other": 1}))
    assert found.shapes == {"ids": (2, 8), "mask": (2, 8)}
    assert found.problems == ()
    assert {each.source for each in found.dimensions} == {"dims"}


def test_a_later_level_counts_first() -> None:
    top = ShapeLevel(dims={"batch": 1, "seq": 8})
    entry = ShapeLevel(where="m.onnx", shapes={"ids": (2, 16)})
    profile = ShapeLevel(where="m.onnx.profiles.long", dims={"seq": 512})
    assert resolved(top, entry).shapes == {"ids": (2, 16), "mask": (2, 16)}
    found = resolved(top, entry, profile)
    assert found.shapes == {"ids": (2, 512), "mask": (2, 512)}
    assert [each.source for each in found.dimensions[:2]] == [
        "m.onnx.inputs.ids",
        "m.onnx.profiles.long.dims",
    ]


def test_the_shape_of_one_input_is_enough_for_the_symbols_that_it_has() -> None:
    assert resolved(ShapeLevel(shapes={"ids": (2, 16)})).shapes["mask"] == (2, 16)


def test_dimensions_without_a_name_are_not_the_same() -> None:
    other = ModelInput("other", (None,), ("?",))
    found = resolved(ShapeLevel(shapes={"image": (2, 3, 4)}), inputs=(IMAGE, other))
    assert found.shapes == {"image": (2, 3, 4)}
    assert found.problems == (
        (
            "axis 0 of input other is dynamic without a name. "
            "Give the whole shape under inputs: other: [...] in tunegate.yaml."
        ),
    )


@pytest.mark.parametrize("name", ["", "?", "None"])
def test_no_size_by_symbol_is_that_of_a_dimension_without_a_name(name: str) -> None:
    unnamed = ModelInput("x", (None, None), (name, "seq"))
    found = resolved(ShapeLevel(dims={name: 4, "seq": 8}), inputs=(unnamed,))
    assert [each.size for each in found.dimensions] == [None, 8]
    assert [problem.partition(".")[0] for problem in found.problems] == [
        "axis 0 of input x is dynamic without a name"
    ]
    assert symbols_of((unnamed,)) == {"seq"}


def test_a_static_model_needs_nothing() -> None:
    assert resolved(inputs=(STATIC,)) == ResolvedShapes(shapes={})
    assert resolved(ShapeLevel(shapes={"x": (1, 4)}), inputs=(STATIC,)).shapes == {"x": (1, 4)}


def test_an_input_without_a_rank_takes_any_shape_and_needs_one() -> None:
    free = ModelInput("x", (), is_ranked=False)
    assert resolved(ShapeLevel(shapes={"x": (2, 3)}), inputs=(free,)).shapes == {"x": (2, 3)}
    (problem,) = resolved(inputs=(free,)).problems
    assert problem.startswith("input x has no shape in the model.")


@pytest.mark.parametrize(
    ("level", "problem"),
    [
        (ShapeLevel(shapes={"z": (1,)}), "inputs.z: the model has no such input; it has x"),
        (ShapeLevel(shapes={"x": (1,)}), "inputs.x has 1 numbers, the model's has 2 dimensions"),
        (ShapeLevel(shapes={"x": (1, 5)}), "inputs.x: axis 1 is 4 in the model, not 5"),
    ],
)
def test_a_shape_that_cannot_be_is_named(level: ShapeLevel, problem: str) -> None:
    assert resolved(level, inputs=(STATIC,)).problems == (f"{problem}.",)


def test_gaps_are_one_line_for_each_symbol() -> None:
    problems = resolved(ShapeLevel(dims={"batch": 1}), inputs=(IDS, MASK, IMAGE)).problems
    assert problems == (
        (
            'dimension "seq" (axis 1 of ids, axis 1 of mask) is dynamic. '
            "Give its size under dims: seq: ... in tunegate.yaml."
        ),
        (
            "axes 0, 2 of input image are dynamic without a name. "
            "Give the whole shape under inputs: image: [...] in tunegate.yaml."
        ),
    )


@pytest.mark.parametrize(
    "level",
    [
        ShapeLevel(shapes={"ids": (1, 8), "mask": (2, 8)}),
        ShapeLevel(shapes={"ids": (1, 8)}, dims={"batch": 2}),
    ],
)
def test_two_sizes_for_one_symbol_at_one_level_are_a_contradiction(level: ShapeLevel) -> None:
    (problem,) = resolved(level).problems
    assert problem.startswith('"batch" has two sizes: 1 in inputs.ids, 2 in ')


def test_another_level_may_say_otherwise() -> None:
    levels = (ShapeLevel(dims={"batch": 9}), ShapeLevel(shapes={"ids": (1, 8), "mask": (1, 8)}))
    assert resolved(*levels).problems == ()


def test_a_symbol_that_is_a_sum_follows_from_the_others() -> None:
    mask = ModelInput("mask", (None, None), ("batch", "past + seq"))
    past = ModelInput("past_key", (None, 4, None), ("batch", "", "past"))
    level = ShapeLevel(dims={"batch": 1, "seq": 8, "past": 16})
    found = resolved(level, inputs=(IDS, mask, past))
    assert (found.shapes["mask"], found.problems) == ((1, 24), ())
    assert [e.source for e in found.dimensions if e.size == 24] == ["a sum of the others"]
    told = resolved(ShapeLevel(dims={**level.dims, "past + seq": 32}), inputs=(IDS, mask, past))
    assert told.shapes["mask"] == (1, 32)
    (gap,) = resolved(ShapeLevel(dims={"batch": 1, "seq": 8}), inputs=(IDS, mask)).gaps
    assert gap.startswith('dimension "past + seq"')


def test_tensors_of_a_sequence_need_no_size_and_take_one() -> None:
    parts = ModelInput("parts", (None, 4), ("n", ""), is_several=True)
    free = ModelInput("free", (), is_ranked=False, is_several=True)
    found = resolved(inputs=(parts, free))
    assert (found.shapes, found.problems) == ({}, ())
    level = ShapeLevel(dims={"n": 3}, shapes={"free": (2, 2)})
    assert resolved(level, inputs=(parts, free)).shapes == {"parts": (3, 4), "free": (2, 2)}


def test_an_input_may_be_empty_beside_others() -> None:
    """The past of a first token is such a one."""
    mask = ModelInput("mask", (None, None), ("batch", "past_len + seq"))
    past = ModelInput("past", (None, 4, None, 8), ("batch", "", "past_len", ""))
    level = ShapeLevel(dims={"batch": 1, "seq": 8, "past_len": 0})
    found = resolved(level, inputs=(IDS, mask, past))
    assert found.problems == ()
    assert found.shapes == {"ids": (1, 8), "mask": (1, 8), "past": (1, 4, 0, 8)}


@pytest.mark.parametrize("rate", [ModelInput("rate", ()), ModelInput("rate", (1,))])
def test_a_size_that_leaves_nothing_to_measure_is_a_mistake(rate: ModelInput) -> None:
    found = resolved(ShapeLevel(dims={"batch": 0, "seq": 8}), inputs=(IDS, MASK, rate))
    assert found.mistakes == (
        (
            '"batch" is 0 (dims). No input has more than one number then, so nothing would be '
            "measured. Give it at least 1."
        ),
    )
    unnamed = resolved(ShapeLevel(shapes={"image": (2, 3, 0)}), inputs=(IMAGE, rate))
    assert [each.partition(".")[0] for each in unnamed.mistakes] == ["axis 2 of image is 0 (inputs"]


def test_an_input_that_the_model_itself_has_empty_is_no_mistake() -> None:
    empty = ModelInput("boxes", (0, 4))
    assert resolved(inputs=(empty,)).problems == ()
    assert resolved(ShapeLevel(shapes={"boxes": (0, 4)}), inputs=(empty,)).problems == ()
    (problem,) = resolved(ShapeLevel(shapes={"boxes": (1, 4)}), inputs=(empty,)).problems
    assert problem == "inputs.boxes: axis 0 is 0 in the model, not 1."
