from __future__ import annotations

import pytest

from tunegate.artifacts.outlines import ModelInput
from tunegate.policy.shapes import fit

OPEN = (ModelInput("ids", (1, None)), ModelInput("mask", (1, 4)))


@pytest.mark.parametrize(
    ("shapes", "fits"),
    [
        ({"ids": (1, 512)}, True),
        ({"ids": (1, 512), "mask": (1, 4)}, True),
        ({}, False),
        ({"ids": (2, 512)}, False),
        ({"ids": (512,)}, False),
        ({"ids": (1, 512), "mask": (1, 8)}, False),
        ({"ids": (1, 512), "other": (1,)}, False),
    ],
)
def test_shapes_fit_where_every_input_is_given_as_the_model_has_it(
    shapes: dict[str, tuple[int, ...]], fits: bool
) -> None:
    assert fit(shapes, OPEN) is fits


def test_a_static_model_needs_no_shapes() -> None:
    assert fit({}, (ModelInput("x", (1, 4)),))
    assert fit({}, ())
