"""Student's t, the beta, the binomial and the normal distribution, from SciPy: imported
at the first question, because half of what a command takes to start would be this
import, and few commands ask."""

from __future__ import annotations


def t_probability(freedom: int, t: float) -> float:
    """P(T <= t) with so many degrees of freedom."""
    from scipy.special import stdtr  # noqa: PLC0415

    return float(stdtr(freedom, t))


def t_quantile(freedom: int, probability: float) -> float:
    """The t with P(T <= t) = probability."""
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(freedom, probability))


def beta_quantile(a: float, b: float, probability: float) -> float:
    """The x with P(X <= x) = probability for X of Beta(a, b)."""
    from scipy.special import betaincinv  # noqa: PLC0415

    return float(betaincinv(a, b, probability))


def binomial_at_most(count: int, total: int, probability: float) -> float:
    """P(X <= count) for X of Binomial(total, probability)."""
    from scipy.special import bdtr  # noqa: PLC0415

    return float(bdtr(count, total, probability))


def normal_probability(z: float) -> float:
    """P(Z <= z) of the standard normal distribution."""
    from scipy.special import ndtr  # noqa: PLC0415

    return float(ndtr(z))
