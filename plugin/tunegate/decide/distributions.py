"""Student's t, beta, binomial and normal distributions, from SciPy. The import takes half of a
command's start and few commands need it, so each function imports on first use."""


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
