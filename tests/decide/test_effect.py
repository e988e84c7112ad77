from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.decide.decision import hodges_lehmann, launch_effect, within_spread

MILLISECONDS = st.floats(0.01, 1000)
PAIRS = st.lists(st.tuples(MILLISECONDS, MILLISECONDS), min_size=2, max_size=24)


def test_one_wild_block_hardly_moves_the_effect() -> None:
    calm = [0.01] * 11
    assert hodges_lehmann([*calm, 5.0]) == pytest.approx(0.01)


@given(PAIRS)
def test_exchanging_base_and_head_changes_the_sign_only(pairs: list[tuple[float, float]]) -> None:
    base, head = zip(*pairs, strict=True)
    assert launch_effect(base, head) == pytest.approx(-launch_effect(head, base), abs=1e-9)


@given(PAIRS, st.floats(0.001, 1000))
def test_the_unit_of_time_does_not_matter(pairs: list[tuple[float, float]], scale: float) -> None:
    base, head = zip(*pairs, strict=True)
    scaled = launch_effect([b * scale for b in base], [h * scale for h in head])
    assert scaled == pytest.approx(launch_effect(base, head), abs=1e-9)


@given(PAIRS, st.floats(0.1, 10))
def test_a_head_slower_by_a_factor_adds_its_logarithm(
    pairs: list[tuple[float, float]], factor: float
) -> None:
    base, head = zip(*pairs, strict=True)
    slower = launch_effect(base, [h * factor for h in head])
    assert slower == pytest.approx(launch_effect(base, head) + math.log(factor), abs=1e-9)


def test_a_single_pair_has_no_spread() -> None:
    assert within_spread([1.0], [2.0]) == 0.0
