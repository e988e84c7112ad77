"""Student's t, beta, binomial and normal distributions, from SciPy, and the bounds of a share.

The import of SciPy takes half of a command's start and few commands need it, so each function
imports on first use.
"""

from typing import Literal


def t_probability(freedom: int, t: float) -> float:
    """Returns P(T <= t) with `freedom` degrees of freedom."""
    from scipy.special import stdtr  # noqa: PLC0415

    return float(stdtr(freedom, t))


def t_quantile(freedom: int, probability: float) -> float:
    """Returns the t with P(T <= t) = probability."""
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(freedom, probability))


def beta_quantile(a: float, b: float, probability: float) -> float:
    """Returns the x with P(X <= x) = probability for X of Beta(a, b)."""
    from scipy.special import betaincinv  # noqa: PLC0415

    return float(betaincinv(a, b, probability))


def binomial_at_most(count: int, total: int, probability: float) -> float:
    """Returns P(X <= count) for X of Binomial(total, probability)."""
    from scipy.special import bdtr  # noqa: PLC0415

    return float(bdtr(count, total, probability))


def normal_probability(z: float) -> float:
    """Returns P(Z <= z) of the standard normal distribution."""
    from scipy.special import ndtr  # noqa: PLC0415

    return float(ndtr(z))


# The bounds of a share, and an absolute latency objective by them: p percent of inferences within a
# limit. The number of inferences over the limit is binomial; its one-sided Clopper-Pearson bounds
# decide, as MLPerf's early stopping does (inference_rules.adoc, Appendix "Early Stopping").

ERROR = 0.05


def decide_objective(
    over: int, total: int, percentile: float
) -> Literal["fail", "pass", "undecided"]:
    """Returns the decision: `over` of `total` inferences exceeded the limit, and `percentile`
    percent must not."""
    limit = 1 - percentile / 100
    if upper_share(over, total) <= limit:
        return "pass"
    return "fail" if lower_share(over, total) > limit else "undecided"


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
