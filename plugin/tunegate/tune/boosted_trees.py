"""The one door to xgboost: trees fitted to numbers, and what they expect of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_PARAMETERS = {"objective": "reg:squarederror", "nthread": 1, "seed": 1, "verbosity": 0}


class BoostedTrees:
    """Boosted trees over the features of candidates. Where `expected` is given, the trees correct
    what was expected of each row."""

    def __init__(
        self,
        features: np.ndarray,
        labels: np.ndarray,
        parameters: Mapping[str, Any],
        *,
        rounds: int,
        expected: np.ndarray | None = None,
    ) -> None:
        # Imported when there is something to fit: it is a sixth of what a search takes to start.
        import xgboost  # noqa: PLC0415

        matrix = xgboost.DMatrix(features, labels, base_margin=expected)
        self._trees = xgboost.train({**_PARAMETERS, **parameters}, matrix, rounds)

    def predicted(self, features: np.ndarray, expected: np.ndarray | None = None) -> np.ndarray:
        import xgboost  # noqa: PLC0415

        return np.asarray(self._trees.predict(xgboost.DMatrix(features, base_margin=expected)))
