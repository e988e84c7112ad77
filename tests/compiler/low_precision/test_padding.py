from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm import te, tirx

from tunegate.compiler.low_precision.product import Extents, blocks_of, padding_of
from tunegate.errors import UnsupportedModelError

HEIGHT, WIDTH = 5, 4


def bordered(
    value: Callable[..., Any], height: int = HEIGHT + 3, width: int = WIDTH + 3
) -> tuple[Any, list[Any], Any]:
    """The image, the blocks of a function that makes a border around it, and what it makes."""
    image = te.placeholder((1, HEIGHT, WIDTH, 3), "float32", "image")
    made = te.compute((1, height, width, 3), lambda *at: value(image, *at), name="made")
    function = te.create_prim_func([image, made])
    return function.params[0], [*blocks_of(function)], function.params[1]


def zeros_around(image: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
    inside = tirx.all(y >= 1, y < HEIGHT + 1, x >= 2, x < WIDTH + 2)
    return tirx.if_then_else(inside, image[n, y - 1, x - 2, c], tirx.const(0.0, "float32"))


def test_a_border_of_zeros_is_read() -> None:
    image, blocks, made = bordered(zeros_around)
    found, padding = padding_of(blocks, made)
    assert found is not None
    assert found.same_as(image)
    assert padding == Extents(1, 2)


def test_without_a_block_the_image_is_its_own() -> None:
    image, _, _ = bordered(zeros_around)
    assert padding_of([], image) == (image, Extents(0, 0))


def test_a_copy_has_no_border() -> None:
    image, blocks, made = bordered(lambda image, *at: image[at], HEIGHT, WIDTH)
    found, padding = padding_of(blocks, made)
    assert found is not None
    assert found.same_as(image)
    assert padding == Extents(0, 0)


def ones_around(image: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
    inside = tirx.all(y >= 1, y < HEIGHT + 1, x >= 2, x < WIDTH + 2)
    return tirx.if_then_else(inside, image[n, y - 1, x - 2, c], tirx.const(1.0, "float32"))


def less_than_the_image(image: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
    inside = tirx.all(y >= 1, y < HEIGHT, x >= 2, x < WIDTH + 2)
    return tirx.if_then_else(inside, image[n, y - 1, x - 2, c], tirx.const(0.0, "float32"))


def twice_as_far(image: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
    inside = tirx.all(y >= 1, y < HEIGHT + 1, x >= 2, x < WIDTH + 2)
    return tirx.if_then_else(inside, image[n, y // 2, x - 2, c], tirx.const(0.0, "float32"))


@pytest.mark.parametrize("value", [ones_around, less_than_the_image, twice_as_far])
def test_anything_else_is_none(value: Callable[..., Any]) -> None:
    _, blocks, made = bordered(value)
    assert padding_of(blocks, made)[0] is None


def test_a_condition_on_numbers_is_no_border() -> None:
    def by_value(image: Any, n: Any, y: Any, x: Any, c: Any) -> Any:
        return tirx.if_then_else(
            image[n, 0, 0, c] > 0, image[n, y, x, c], tirx.const(0.0, "float32")
        )

    _, blocks, made = bordered(by_value)
    with pytest.raises(UnsupportedModelError, match="more than the place"):
        padding_of(blocks, made)
