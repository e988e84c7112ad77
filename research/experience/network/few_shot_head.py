"""The head of a network, adapted to a task by a few measurements of it.

Of MAML's inner loop the head alone is kept (ANIL: Raghu et al., ICLR 2020), and solved in closed
form (R2-D2: Bertinetto et al., ICLR 2019), so that adapting needs no training library.
"""

from __future__ import annotations

import numpy as np


def adapted_head(
    head: np.ndarray, features: np.ndarray, labels: np.ndarray, strength: float
) -> np.ndarray:
    """Ridge regression towards `head`: as few measurements as eight move it as little as they need
    to. `labels` count from any zero; `strength` is what a unit of change costs, above 0."""
    centred = features - features.mean(axis=0)
    unexplained = labels - labels.mean() - centred @ head
    # As many unknowns as measurements, not as features.
    products = centred @ centred.T + strength * np.eye(len(labels))
    return np.asarray(head + centred.T @ np.linalg.solve(products, unexplained))
