"""The smallest change that a machine can tell from none, from launches of one thing against
itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tunegate.gate.decision import MIN_SPREAD, PASS_ERROR
from tunegate.gate.distributions import t_quantile
from tunegate.gate.interim_analyses import affordable_analyses

_SURELY = 1.645
"""Normal quantile: nineteen of twenty gates without a change pass within the budget."""


def smallest_margin_percent(
    effects: Sequence[float], *, launch_seconds: float, budget_seconds: float
) -> float:
    """The margin under which an unchanged model would surely pass, in percent."""
    analyses = affordable_analyses(budget_seconds, launch_seconds)
    spread = max(float(np.std(effects, ddof=1)), MIN_SPREAD)
    quantile = t_quantile(analyses[-1] - 1, 1 - PASS_ERROR / len(analyses))
    return 100 * math.expm1((quantile + _SURELY) * spread / math.sqrt(analyses[-1]))
