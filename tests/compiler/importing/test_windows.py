"""Slice and Pad by numbers that are inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.support.operator_models import operator_model, rewritten

DATA = np.random.default_rng(0).standard_normal((4, 5, 3)).astype(np.float32)
BOUND = st.integers(-7, 7)


@given(
    st.permutations([0, 1, 2]),
    st.lists(st.tuples(BOUND, BOUND, st.sampled_from([-2, -1, 1, 2])), min_size=1, max_size=3),
    st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_slices_read_what_they_name(
    axes: list[int], bounds: list[tuple[int, int, int]], from_end: bool
) -> None:
    starts, ends, steps = (np.array(column, np.int64) for column in zip(*bounds, strict=True))
    chosen = np.array(axes[: len(bounds)], np.int64) - (3 if from_end else 0)
    feed = {"x": DATA, "s": starts, "e": ends, "a": chosen, "t": steps}
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])
    model = operator_model(node, feed)
    assert "Slice" not in rewritten(model, feed)[-1:]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", [[0, 1, 2, 1, 2, 0], [1, 0, 0, 3, 4, 2]])
def test_pads_fill_as_their_mode_says(mode: str, pads: list[int]) -> None:
    feed = {"x": DATA, "p": np.array(pads, np.int64), "v": np.array(7, np.float32)}
    node = helper.make_node("Pad", ["x", "p", "v"], ["y"], mode=mode)
    assert "Pad" not in rewritten(operator_model(node, feed), feed)


def test_pads_of_some_axes_leave_the_others() -> None:
    feed = {"x": DATA, "p": np.array([1, 2], np.int64), "a": np.array([-1], np.int64)}
    node = helper.make_node("Pad", ["x", "p", "", "a"], ["y"])
    assert "Pad" not in rewritten(operator_model(node, feed), feed)


def test_a_slice_by_constants_stays() -> None:
    constants = {name: np.array([1], np.int64) for name in "se"}
    node = helper.make_node("Slice", ["x", "s", "e"], ["y"])
    feed = {"x": DATA}
    assert rewritten(operator_model(node, feed, constants), feed) == ["Slice"]
