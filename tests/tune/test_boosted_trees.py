from __future__ import annotations

import numpy as np

from tunegate.tune.prior import BoostedTrees

FEATURES = np.arange(64, dtype=np.float32).reshape(-1, 1)
LABELS = (FEATURES[:, 0] > 30).astype(np.float64)
PARAMETERS = {"max_depth": 2, "eta": 0.3}


def test_they_expect_what_they_were_fitted_to() -> None:
    predicted = BoostedTrees(FEATURES, LABELS, PARAMETERS, rounds=20).predicted(FEATURES)
    assert np.abs(predicted - LABELS).max() < 0.1


def test_what_was_expected_rightly_is_not_corrected() -> None:
    trees = BoostedTrees(FEATURES, LABELS, PARAMETERS, rounds=20, expected=LABELS)
    assert np.abs(trees.predicted(FEATURES, LABELS) - LABELS).max() < 1e-6


def test_the_same_numbers_make_the_same_trees() -> None:
    one, other = (BoostedTrees(FEATURES, LABELS, PARAMETERS, rounds=5) for _ in range(2))
    assert (one.predicted(FEATURES) == other.predicted(FEATURES)).all()
