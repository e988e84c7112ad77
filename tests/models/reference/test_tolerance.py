from __future__ import annotations

import numpy as np
import pytest

from tunegate.models.reference.tolerance import differs, errors, tolerance

EXPECTED = np.array([1.0, -100.0, 0.5], dtype="float32")


def test_reordered_sums_are_the_same_result() -> None:
    assert differs(EXPECTED * np.float32(1 + 1e-5), EXPECTED) == ""
    assert differs(EXPECTED, EXPECTED) == ""


def test_an_error_counts_beside_the_largest_output() -> None:
    small = np.array([0.0, 0.09, 0.0], dtype="float32")
    assert differs(EXPECTED + small, EXPECTED) == ""
    assert differs(EXPECTED + 2 * small, EXPECTED) == "off by 0.18, 0.0018 of the largest output"


def test_another_shape_is_another_result() -> None:
    assert differs(EXPECTED.reshape(3, 1), EXPECTED) == "shape (3, 1) instead of (3,)"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_none_on_either_side(odd: float) -> None:
    broken = np.array([1.0, odd, 0.5], dtype="float32")
    assert differs(broken, EXPECTED) == "not a number where one is expected"
    assert differs(EXPECTED, broken) == "a number where NaN or infinity is expected"
    assert differs(-np.abs(broken), np.abs(broken)) or np.isnan(odd)
    assert differs(broken, broken) == ""


def test_texts_are_equal_or_not() -> None:
    texts = np.array([["a", "b"]], dtype=object)
    assert differs(texts, texts.astype("<U1")) == ""
    assert differs(np.array([["a", "c"]]), texts) == "'c' instead of 'b'"
    assert differs(np.zeros((1, 2)), texts) == "0.0 instead of 'a'"


def test_integers_must_be_equal() -> None:
    ids = np.array([1000, 2], dtype="int64")
    assert differs(ids, ids) == ""
    assert differs(ids + np.array([0, 1]), ids) != ""


def test_narrower_numbers_may_lie_further_apart() -> None:
    allowed = [tolerance(name) for name in ("int64", "float64", "float32", "float16", "bfloat16")]
    assert allowed == sorted(set(allowed))
    assert allowed[0] == 0.0


def test_errors_are_absolute_and_relative_to_the_largest_magnitude() -> None:
    assert errors(EXPECTED + 1, EXPECTED) == (1.0, 0.01)
    assert errors(np.zeros(0), np.zeros(0)) == (0.0, 0.0)
    assert errors(np.array([0.25]), np.array([0.0])) == (0.25, 0.25)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_adds_no_error(value: float) -> None:
    assert errors(np.array([value, 2.0]), np.array([value, 1.0])) == (1.0, 1.0)
