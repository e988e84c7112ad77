from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.changes import ModelInput
from tunegate.review.covered_model import NamesInHead, names_in_head
from tunegate.review.input_shapes import ShapeLevel

X = ModelInput("x", (None, 8), dtype="float32")
MASK = ModelInput("mask", (None,), dtype="int64")


def called(name: str, value: ModelInput, dtype: str | None = None) -> ModelInput:
    return ModelInput(name, value.dimensions, dtype=dtype or value.dtype)


@pytest.mark.parametrize(
    ("head", "renamed", "lost", "new"),
    [
        ((X, MASK), {}, set(), set()),
        ((X,), {}, {"mask"}, set()),
        ((X, called("length", MASK)), {"mask": "length"}, set(), {"length"}),
        ((X, called("length", MASK, "int32")), {"mask": "length"}, set(), {"length"}),
        ((X, MASK, called("other", MASK)), {}, set(), {"other"}),
        ((X, called("wide", X)), {}, {"mask"}, {"wide"}),
        ((called("mask", X), called("x", MASK)), {"x": "mask", "mask": "x"}, set(), {"x", "mask"}),
    ],
)
def test_an_input_is_the_same_by_its_name_or_else_by_what_it_takes(
    head: tuple[ModelInput, ...], renamed: dict[str, str], lost: set[str], new: set[str]
) -> None:
    found = names_in_head((X, MASK), head)
    assert found == NamesInHead(renamed, frozenset(lost), frozenset(new))


def test_of_several_that_are_renamed_those_of_one_type_come_first() -> None:
    head = (called("a", X, "float16"), called("b", X))
    assert names_in_head((X,), head).renamed == {"x": "b"}


def test_what_is_said_of_the_base_is_said_under_the_names_of_the_head() -> None:
    names = NamesInHead({"x": "z"}, lost=frozenset({"mask"}))
    level = ShapeLevel(where="w", dims={"n": 1}, shapes={"x": (1,), "mask": (2,), "y": (3,)})
    assert names.level(level) == ShapeLevel(where="w", dims={"n": 1}, shapes={"z": (1,), "y": (3,)})
    assert names.inputs((X, MASK)) == (called("z", X),)
    assert names.gone == {"x", "mask"}


def test_of_a_model_that_nobody_can_read_nothing_is_renamed() -> None:
    assert names_in_head(None, (X,)) == names_in_head((X,), None) == NamesInHead()


@st.composite
def inputs(draw: st.DrawFn) -> tuple[ModelInput, ...]:
    names = draw(st.lists(st.sampled_from("abcd"), unique=True))
    ranks = st.integers(0, 2).map(lambda rank: (None,) * rank)
    return tuple(ModelInput(name, draw(ranks), dtype=draw(st.sampled_from("fi"))) for name in names)


@given(inputs(), inputs())
def test_every_input_is_kept_renamed_lost_or_new_and_two_never_become_one(
    base: tuple[ModelInput, ...], head: tuple[ModelInput, ...]
) -> None:
    names = names_in_head(base, head)
    after = [each.name for each in names.inputs(base)]
    assert len({*after}) == len(after) == len(base) - len(names.lost)
    assert {*after} <= {each.name for each in head}
    assert {*names.renamed.values()} <= names.new
    backwards = names.backwards
    assert backwards.renamed == {now: was for was, now in names.renamed.items()}
    assert backwards.inputs(names.inputs(base)) == tuple(
        each for each in base if each.name not in names.lost
    )
