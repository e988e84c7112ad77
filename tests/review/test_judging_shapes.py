from __future__ import annotations

import pytest

from tunegate.artifacts.changes import ModelInput
from tunegate.config import Config, InputConfig, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.review.covered_model import EntryOf, JudgingShapes, judging_shapes

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
def test_no_name_of_a_dimension_makes_a_head_smaller_than_its_base(
    symbols: tuple[str, str],
) -> None:
    """A sum of other symbols, two that changed their places, and a new one with a size."""
    renamed = (ModelInput("x", (None, None), symbols), PAIR[1])
    new = side({"batch": 8, "seq": 64, "tiny": 1})
    found = judging_shapes(side(WIDE), new, renamed, PAIR)
    shapes = dict.fromkeys(("x", "mask"), (8, 128))
    assert found.inputs == shapes


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


def test_smaller_dims_of_the_head_have_no_effect() -> None:
    found = judged(side(WIDE), side(TINY))
    assert found.inputs == {"x": (8, 128)}
    assert [(each.effect, each.counts) for each in found.changes] == [("changed", "once merged")]


def test_smaller_dims_have_no_effect_on_a_model_that_nobody_can_read() -> None:
    found = judged(side(WIDE), side(TINY), None)
    assert found.dims == WIDE
    (told,) = found.changes
    assert (told.key, told.old, told.new) == (
        "models[].dims",
        "{batch: 8, seq: 128}",
        "{batch: 1, seq: 128}",
    )


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
    assert found.inputs == {
        "x": InputConfig(shape=(8, 128), values=ValuesConfig(low=5, high=9)),
    }
    assert [each.key for each in found.changes] == ["models[].inputs"]


def test_a_removed_profile_stays_and_is_told() -> None:
    profiles = {"one": ProfileConfig(), "many": ProfileConfig(dims={"batch": 64})}
    found = judged(side(WIDE, profiles=profiles), side(WIDE, profiles={"one": ProfileConfig()}))
    assert {name: each.inputs for name, each in found.profiles.items()} == {
        "one": {"x": (8, 128)},
        "many": {"x": (64, 128)},
    }
    assert [(each.old, each.effect) for each in found.changes] == [("many", "loosened")]


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


def test_without_an_entry_of_the_head_everything_is_the_bases() -> None:
    found = judged(side(WIDE, dims={"seq": 4}), None, None)
    assert found.dims == {"batch": 8, "seq": 4}
