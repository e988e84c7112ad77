import numpy as np
import pytest

from tunegate.artifacts.inputs import (
    Columns,
    Constant,
    Draw,
    Files,
    InputRule,
    Integers,
    Normal,
    OneOf,
    Uniform,
)
from tunegate.errors import MeasurementError
from tunegate.models.inputs.agreement import agree_on_inputs, intersect_rules, is_alike
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactTensor


def _tensor(name: str, high: int = 9, shape: tuple[int, ...] = (2,)) -> ArtifactTensor:
    return ArtifactTensor(name, shape, "int64", InputRule(Integers(0, high), "w"))


def test_shared_inputs_come_first_and_in_the_order_of_the_base() -> None:
    base, head = agree_on_inputs(
        [_tensor("a"), _tensor("b")], [_tensor("new"), _tensor("b"), _tensor("a")]
    )
    assert [tensor.name for tensor in base] == ["a", "b"]
    assert [tensor.name for tensor in head] == ["a", "b", "new"]


def test_inputs_of_another_shape_are_not_shared() -> None:
    base, head = agree_on_inputs([_tensor("a", 9)], [_tensor("a", 4, (3,))])
    assert (base, head) == ((_tensor("a", 9),), (_tensor("a", 4, (3,)),))


@pytest.mark.parametrize(
    ("dtype", "ours", "theirs"),
    [
        ("int64", Constant(8000), Constant(16000)),
        ("int64", Integers(0, 3), Integers(5, 9)),
        ("object", OneOf(("a",)), OneOf(("b",))),
        ("float32", OneOf((1.0,)), Normal()),
    ],
)
def test_values_with_nothing_in_common_are_refused(dtype: str, ours: Draw, theirs: Draw) -> None:
    base, head = (ArtifactTensor("rate", (), dtype, InputRule(each)) for each in (ours, theirs))
    with pytest.raises(MeasurementError, match="input rate: base and head take no equal values"):
        agree_on_inputs([base], [head])


def test_floats_are_those_of_the_base_where_the_head_would_draw_others() -> None:
    rules = (InputRule(Normal(3.0), "a"), InputRule(Uniform(0.0, 255.0), "b"))
    sides = agree_on_inputs(*([ArtifactTensor("x", (2,), "float32", rule)] for rule in rules))
    assert [tensor.rule for (tensor,) in sides] == [InputRule(Normal(3.0), "b")] * 2


def test_values_that_the_user_gave_stay_those_of_each_side() -> None:
    base = ArtifactTensor("x", (2,), "int64", InputRule(Files(("x.npy",))))
    for other in (InputRule(Integers(0, 3)), InputRule(Files(("y.npy",)))):
        head = ArtifactTensor("x", (2,), "int64", other)
        assert agree_on_inputs([base], [head]) == ((base,), (head,))


def test_categories_and_columns_are_narrowed_too() -> None:
    texts = intersect_rules(InputRule(OneOf(("a", "b"))), InputRule(OneOf(("b", "c"))))
    assert texts == InputRule(OneOf(("b",)))
    one = InputRule(Columns(1, (Integers(0, 9), Normal())))
    other = InputRule(Columns(1, (Integers(5, 20), Normal())))
    assert intersect_rules(one, other) == InputRule(Columns(1, (Integers(5, 9), Normal())))
    assert intersect_rules(one, InputRule(Integers(0, 1))) == InputRule(Integers(0, 1))


def test_another_width_of_the_type_gives_no_head_other_numbers() -> None:
    one, other = InputRule(Integers(0, 9)), InputRule(Integers(0, 4))
    base, head = ArtifactTensor("a", (2,), "int64", one), ArtifactTensor("a", (2,), "int32", other)
    rules = [tensor.rule for side in agree_on_inputs([base], [head]) for tensor in side]
    assert rules == [other, other]
    assert is_alike("float32", "float64")
    assert not any(is_alike("int64", kind) for kind in ("int8", "float64", "uint64", "bool"))


def test_a_head_that_asks_for_one_number_gives_it_to_its_base() -> None:
    token, vocabulary = InputRule(Constant(3)), InputRule(Integers(0, 9))
    assert intersect_rules(vocabulary, token) == token
    assert intersect_rules(token, vocabulary) == token
    assert intersect_rules(vocabulary, InputRule(Constant(10))) == InputRule(Constant(10))


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (("int64", Integers(0, 30_000)), ("float32", Normal()), Integers(0, 30_000)),
        (("int64", Integers(0, 300)), ("int8", None), Integers(0, 1)),
        (("int64", Integers(0, 300)), ("int64", None), Integers(0, 1)),
        (("bool", None), ("bool", Constant(1)), Constant(1)),
        (("int64", Integers(0, 300)), ("int8", Integers(0, 300)), Integers(0, 127)),
        (("float32", Uniform(-0.5, 9.5)), ("uint8", Integers(0, 255)), Integers(0, 9)),
        (("bool", None), ("float32", Normal()), Integers(0, 1)),
        (("float16", Normal(1, 2)), ("float64", Normal(1, 2)), Normal(1, 2)),
        (("float32", None), ("float16", None), Normal()),
    ],
)
def test_a_change_of_the_type_gives_both_sides_equal_numbers(
    base: tuple[str, Draw | None], head: tuple[str, Draw | None], expected: Draw
) -> None:
    sides = [
        ArtifactTensor("x", (40,), dtype, InputRule(values) if values is not None else None)
        for dtype, values in (base, head)
    ]
    agreed_sides = agree_on_inputs(*([side] for side in sides))
    assert [tensor.rule.values for (tensor,) in agreed_sides if tensor.rule] == [expected] * 2
    ours, theirs = (seeded_inputs(side, 7)["x"] for side in agreed_sides)
    assert (ours.dtype, theirs.dtype) == (base[0], head[0])
    np.testing.assert_allclose(ours.astype("f8"), theirs.astype("f8"), atol=0.01)


def test_a_text_shares_no_values_with_numbers() -> None:
    text = ArtifactTensor("x", (2,), "object", InputRule(OneOf(("a",))))
    assert agree_on_inputs([text], [_tensor("x")]) == ((text,), (_tensor("x"),))
