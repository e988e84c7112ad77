import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.changes import ModelInput
from tunegate.config import Config, InputConfig, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.review.covered_model import EntryOf, JudgingShapes, judging_shapes
from tunegate.review.input_shapes import (
    ResolvedShapes,
    ShapeLevel,
    computed_size,
    resolve_shapes,
    symbols_of,
)

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
    expected = ["m.onnx.inputs.ids", "m.onnx.profiles.long.dims"]
    assert [each.source for each in found.dimensions[:2]] == expected


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


INPUTS = (ModelInput("x", (None, None), ("batch", "seq")),)


def side(top: dict[str, int], **fields: object) -> EntryOf:
    entry = ModelConfig(path="**", **fields)  # type: ignore[arg-type]  # a builder
    return EntryOf(Config(models=(entry,), dims=top), entry)


def judged(
    old: EntryOf, new: EntryOf | None, inputs: tuple[ModelInput, ...] | None = INPUTS
) -> JudgingShapes:
    return judging_shapes(old, new, inputs)


WIDE = {"batch": 8, "seq": 128}
TINY = {"batch": 1, "seq": 128}
PAIR = (*INPUTS, ModelInput("mask", (None, None), ("batch", "seq")))


@pytest.mark.parametrize("symbols", [("batch - 7", "seq"), ("seq", "batch"), ("tiny", "seq")])
def test_no_name_of_a_dimension_makes_a_head_smaller(symbols: tuple[str, str]) -> None:
    """A sum of other symbols, two that changed their places, and a new one with a size."""
    renamed = (ModelInput("x", (None, None), symbols), PAIR[1])
    new = side({"batch": 8, "seq": 64, "tiny": 1})
    found = judging_shapes(side(WIDE), new, renamed, PAIR)
    assert found.inputs == dict.fromkeys(("x", "mask"), (8, 128))


@pytest.mark.parametrize(
    ("after", "given", "shapes"),
    [
        (INPUTS, {"x": (1, 1)}, {"x": (8, 128)}),
        ((PAIR[0], ModelInput("q", (None, None))), {"x": (8, 128), "q": (1, 1)}, None),
        ((ModelInput("z", (None, None)), PAIR[1]), {"z": (1, 1), "mask": (8, 128)}, None),
    ],
)
def test_an_input_that_goes_or_gets_another_name_makes_no_head_smaller(
    after: tuple[ModelInput, ...],
    given: dict[str, tuple[int, ...]],
    shapes: dict[str, tuple[int, ...]] | None,
) -> None:
    old = side({}, inputs={"x": (8, 128), "mask": (8, 128)})
    found = judging_shapes(old, side({}, inputs=given), after, PAIR)
    assert found.inputs == (shapes or dict.fromkeys(given, (8, 128)))
    assert [each.counts for each in found.changes] == ["once merged"]


def test_smaller_dims_have_no_effect_on_a_model_that_nobody_can_read() -> None:
    found = judged(side(WIDE), side(TINY), None)
    assert found.dims == WIDE
    (told,) = found.changes
    expected = ("models[].dims", "{batch: 8, seq: 128}", "{batch: 1, seq: 128}")
    assert (told.key, told.old, told.new) == expected


def test_dims_that_fit_no_more_are_the_heads() -> None:
    found = judged(side({"batch": 8}), side(TINY))
    assert found.inputs == {"x": (1, 128)}
    assert [each.counts for each in found.changes] == ["now"]


def test_a_symbol_of_other_models_is_no_change() -> None:
    assert judged(side(WIDE), side({**WIDE, "height": 224})).changes == ()


def test_the_values_of_the_base_count() -> None:
    def of(low: int) -> dict[str, InputConfig]:
        return {"x": InputConfig(values=ValuesConfig(low=low, high=9))}

    found = judged(side(WIDE, inputs=of(5)), side(WIDE, inputs=of(0)))
    assert found.inputs == {"x": InputConfig(shape=(8, 128), values=ValuesConfig(low=5, high=9))}
    assert [each.key for each in found.changes] == ["models[].inputs"]


def test_a_profile_of_the_base_cannot_be_made_smaller() -> None:
    def of(batch: int) -> dict[str, ProfileConfig]:
        return {"many": ProfileConfig(dims={"batch": batch})}

    found = judged(side(WIDE, profiles=of(64)), side(WIDE, profiles=of(1)))
    assert found.profiles["many"].inputs == {"x": (64, 128)}
    assert [each.key for each in found.changes] == ["models[].profiles.many"]


def test_a_removed_profile_that_fits_no_more_is_gone() -> None:
    static = (ModelInput("x", (1, 128)),)
    many = {"many": ProfileConfig(inputs={"x": (64, 128)}), "one": ProfileConfig()}
    found = judged(side({}, profiles=many), side({}, profiles={"one": ProfileConfig()}), static)
    assert list(found.profiles) == ["one"]
    assert [each.counts for each in found.changes] == ["now"]


def test_a_profile_under_another_name_is_no_change() -> None:
    old, new = ({name: ProfileConfig(dims={"seq": 9})} for name in ("a", "b"))
    found = judged(side(WIDE, profiles=old), side(WIDE, profiles=new))
    assert (found.changes, found.profiles) == ((), new)


def test_a_new_name_of_a_dimension_leaves_the_base_its_sizes() -> None:
    """The head's entry has the new name alone, and the base is run at sizes all the same."""
    old, new = ({"p": ProfileConfig(dims={name: 9})} for name in ("seq", "length"))
    after = (ModelInput("x", (None, None), ("batch", "length")),)
    before = side({"batch": 1}, profiles=old)
    found = judging_shapes(before, side({"batch": 1}, profiles=new), after, INPUTS)
    assert found.changes == ()
    assert found.profiles == {"p": ProfileConfig(inputs={"x": (1, 9)})}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_model_without_a_profile_is_judged_beside_its_profiles(*, is_first: bool) -> None:
    """The first profiles of a model, or none any more: what the base asks for stays."""
    profiles = {"one": ProfileConfig(dims={"seq": 1}), "many": ProfileConfig(dims={"seq": 64})}
    sides = side(WIDE), side(WIDE, profiles=profiles)
    found = judged(*(sides if is_first else reversed(sides)))
    assert set(found.profiles) == {"", "one", "many"}
    assert {each.effect for each in found.changes} == {"loosened", "tightened"}


SIZES = {"past": 16, "seq": 8}


@pytest.mark.parametrize(
    ("symbol", "size"),
    [
        ("past + seq", 24),
        ("past+1", 17),
        ("2*seq", 16),
        ("((past - 1)//2) + 1", 8),
        ("seq - 8", 0),
        ("seq", None),
        ("0", None),
        ("past + other", None),
        ("seq - past", None),
        ("past // 0", None),
        ("past ** seq", None),
        ("True + seq", None),
        ("max(past, seq)", None),
        ("batch-size", None),
        ("(" * 150 + "seq" + ")" * 150, None),
        ("+".join(["seq"] * 200), None),
        ("unk__12", None),
        ("seq +", None),
        ("", None),
    ],
)
def test_a_sum_of_known_sizes_is_a_size(symbol: str, size: int | None) -> None:
    assert computed_size(symbol, SIZES) == size


@pytest.mark.parametrize(
    ("symbol", "sizes", "size"),
    [
        ("total_sequence_length", {"past_sequence_length": 16, "sequence_length": 128}, 144),
        ("total_seq_len", {"past_seq_len": 0, "seq_len": 7}, 7),
        ("total_sequence_length", {"sequence_length": 128}, None),
        ("total_sequence_length", {"past_sequence_length": 16, "seq": 128}, None),
        ("sequence_length", {"past_sequence_length": 16, "sequence_length": 128}, None),
    ],
)
def test_the_total_of_a_cache_is_its_past_and_what_is_new(
    symbol: str, sizes: dict[str, int], size: int | None
) -> None:
    assert computed_size(symbol, sizes) == size


@given(st.text(max_size=60))
def test_no_name_that_an_exporter_may_write_is_a_fault(symbol: str) -> None:
    size = computed_size(symbol, SIZES)
    assert size is None or size >= 0
