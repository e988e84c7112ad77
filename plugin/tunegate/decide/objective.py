"""An absolute latency objective: p percent of inferences within a
limit, by the exact binomial rule.

The number of inferences over the limit is binomial; its one-sided Clopper-Pearson bounds decide, as
MLPerf's early stopping does (inference_rules.adoc, Appendix "Early Stopping").
"""

from tunegate.decide.decision import CellDecision
from tunegate.decide.distributions import beta_quantile

ERROR = 0.05


def decide_objective(over: int, total: int, percentile: float) -> CellDecision:
    """Returns the decision: `over` of `total` inferences exceeded the limit, and `percentile`
    percent must not."""
    allowed = 1 - percentile / 100
    if upper_share(over, total) <= allowed:
        return "pass"
    return "fail" if lower_share(over, total) > allowed else "undecided"


def upper_share(over: int, total: int) -> float:
    """Returns the upper 95% bound of the share over the limit."""
    return 1.0 if over >= total else beta_quantile(over + 1, total - over, 1 - ERROR)


def lower_share(over: int, total: int) -> float:
    """Returns the lower 95% bound of the share over the limit."""
    return 0.0 if over == 0 else beta_quantile(over, total - over + 1, ERROR)


def inferences_needed(percentile: float) -> int:
    """Returns the fewest inferences that pass if none exceeds the limit."""
    count = 1
    while upper_share(0, count) > 1 - percentile / 100:
        count *= 2
    low = count // 2
    while low + 1 < count:
        middle = (low + count) // 2
        if upper_share(0, middle) > 1 - percentile / 100:
            low = middle
        else:
            count = middle
    return count
