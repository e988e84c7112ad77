"""A head that a few measurements move."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.experience.network.few_shot_head import adapted_head

WIDTH = 6


def drawn(seed: int, count: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=WIDTH), rng.normal(size=(count, WIDTH)), rng.normal(size=WIDTH)


@given(st.integers(0, 2**32 - 1), st.floats(-1e3, 1e3))
def test_the_zero_of_the_labels_does_not_count(seed: int, zero: float) -> None:
    head, features, true = drawn(seed)
    labels = features @ true
    found = adapted_head(head, features, labels, 1.0)
    assert adapted_head(head, features, labels + zero, 1.0) == pytest.approx(found, abs=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_a_head_that_is_right_stays(seed: int) -> None:
    _, features, true = drawn(seed)
    assert adapted_head(true, features, features @ true, 1.0) == pytest.approx(true, abs=1e-8)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 10))
def test_it_is_the_ridge_regression_of_what_the_head_does_not_explain(
    seed: int, strength: float
) -> None:
    head, features, true = drawn(seed)
    labels = features @ true + 1
    centred = features - features.mean(axis=0)
    normal = centred.T @ centred + strength * np.eye(WIDTH)
    change = np.linalg.solve(normal, centred.T @ (labels - labels.mean() - centred @ head))
    found = adapted_head(head, features, labels, strength)
    assert found == pytest.approx(head + change, abs=1e-6)


def test_much_strength_changes_nothing_and_little_follows_the_task() -> None:
    head, features, true = drawn(1)
    labels = features @ true
    assert adapted_head(head, features, labels, 1e9) == pytest.approx(head, abs=1e-6)
    assert adapted_head(head, features, labels, 1e-9) == pytest.approx(true, abs=1e-6)
