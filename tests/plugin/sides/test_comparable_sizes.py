from __future__ import annotations

import pytest

from tunegate.artifacts.outlines import ModelInput
from tunegate.sides.comparable_sizes import same_as_base, static_sizes

STATIC = ModelInput("x", (2, 8))
OPEN = ModelInput("x", (None, 8), ("batch", ""))


@pytest.mark.parametrize(
    ("base", "head", "sizes"),
    [
        (STATIC, OPEN, {"x": (2, 8)}),
        (STATIC, ModelInput("x", (), is_ranked=False), {"x": (2, 8)}),
        (STATIC, STATIC, {}),
        (OPEN, OPEN, {}),
        (OPEN, STATIC, {}),
        (STATIC, ModelInput("z", (None, 8)), {}),
        (STATIC, ModelInput("x", (None, 9)), {}),
        (STATIC, ModelInput("x", (None, None, 8)), {}),
        (ModelInput("x", (), is_ranked=False), OPEN, {}),
    ],
)
def test_one_side_says_the_sizes_where_it_is_static_and_the_other_is_not(
    base: ModelInput, head: ModelInput, sizes: dict[str, tuple[int, ...]]
) -> None:
    assert static_sizes((base,), (head,)) == sizes


def test_a_head_is_run_at_the_shapes_of_its_base_where_it_takes_them() -> None:
    open_too = ModelInput("x", (None, 8), ("tiny", ""))
    shapes = {"x": (64, 8), "gone": (1,)}
    assert same_as_base(shapes, (open_too,)) == {"x": (64, 8)}
    assert same_as_base(shapes, (STATIC, ModelInput("new", (None,)))) == {}
    assert same_as_base(shapes, (ModelInput("x", (None, 9)),)) == {}
