"""The rules by which other tools decide, re-implemented from their documentation and sources: only
the decision, on the samples they would take. Each gets base and head as [launch, pair, inference]
in milliseconds and says whether it would report the head as slower.

Where a tool takes means of repetitions, a repetition is a run of neighbouring blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import stats

Values = npt.NDArray[np.float64]
PeerRule = Callable[[Values, Values], bool]

_ALPHA = 0.05
_BOOTSTRAPS = 300
_CRITERION_NOISE = 0.01
_ASV_ALPHA, _ASV_FACTOR = 0.002, 1.1
_NVBENCH_GAP = 0.005
_TANGO_Z, _TANGO_LEAST = 2.6, 0.01
_CONBENCH_Z = 5.0


def repetitions(times: Values, count: int) -> Values:
    """Means of `count` runs of neighbouring blocks, in the order they were taken."""
    blocks = times.mean(axis=-1).reshape(-1)
    size = max(1, len(blocks) // count)
    means: Values = blocks[: size * (len(blocks) // size)].reshape(-1, size).mean(axis=1)
    return means[:count]


def github_action_benchmark(percent: float) -> PeerRule:
    """`alert-threshold`: one number of each run, their ratio (src/write.ts, findAlerts)."""
    return lambda base, head: bool(head.mean() / base.mean() > percent / 100)


def benchstat(base: Values, head: Values) -> bool:
    """Mann-Whitney U on ten runs of each, alpha 0.05, the medians are shown (benchmath,
    AssumeNothing)."""
    before, after = repetitions(base, 10), repetitions(head, 10)
    differs = stats.mannwhitneyu(before, after, alternative="two-sided").pvalue < _ALPHA
    return bool(differs and np.median(after) > np.median(before))


def google_compare(base: Values, head: Values) -> bool:
    """The rule of tools/compare.py: a two-sided U test at 0.05 on nine repetitions."""
    before, after = repetitions(base, 9), repetitions(head, 9)
    differs = stats.mannwhitneyu(before, after, alternative="two-sided").pvalue < _ALPHA
    return bool(differs and after.mean() > before.mean())


def criterion(base: Values, head: Values) -> bool:
    """Returns True where Criterion calls it regressed: a t test at 0.05 says that they differ, and
    the bootstrapped interval of the change of the mean lies above the noise threshold of 1%
    (Criterion.rs, analysis/compare.rs)."""
    before, after = repetitions(base, 100), repetitions(head, 100)
    if stats.ttest_ind(before, after).pvalue >= _ALPHA:
        return False
    rng = np.random.default_rng(0)
    shape = (_BOOTSTRAPS, len(before))
    changes = rng.choice(after, shape).mean(axis=1) / rng.choice(before, shape).mean(axis=1) - 1
    return bool(np.percentile(changes, 2.5) > _CRITERION_NOISE)


def pyperf(base: Values, head: Values) -> bool:
    """`compare_to`: Student's two-tailed test at 0.05 on the values of all processes."""
    before, after = repetitions(base, 60), repetitions(head, 60)
    return bool(stats.ttest_ind(before, after).pvalue < _ALPHA and after.mean() > before.mean())


def asv_continuous(base: Values, head: Values) -> bool:
    """Returns True where asv calls it slower over interleaved rounds: a U test at 0.002, and a
    factor of 1.1 (asv, _stats.is_different)."""
    before, after = base.mean(axis=-1).reshape(-1), head.mean(axis=-1).reshape(-1)
    differs = stats.mannwhitneyu(before, after, alternative="two-sided").pvalue < _ASV_ALPHA
    return bool(differs and np.median(after) > _ASV_FACTOR * np.median(before))


def nvbench_robust(base: Values, head: Values) -> bool:
    """The robust comparison of nvbench_compare.py: the fastest of the head against the upper
    quartile of the base, with a gap of 0.5%."""
    quartile = np.percentile(base, 75)
    return bool((head.min() - quartile) / quartile >= _NVBENCH_GAP)


def tango(base: Values, head: Values) -> bool:
    """Paired differences of samples: |z| of 2.6 or more, and 1% of the mean."""
    differences = (head.mean(axis=-1) - base.mean(axis=-1)).reshape(-1)
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    z = differences.mean() / max(error, 1e-12)
    return bool(z >= _TANGO_Z and differences.mean() / base.mean() > _TANGO_LEAST)


def bencher_t_test(history: Values, head: Values) -> bool:
    """A threshold with model `t_test`, upper boundary 0.99: one new number against the last 64."""
    means = history.mean(axis=(1, 2))
    width = stats.t.ppf(0.99, len(means) - 1) * means.std(ddof=1) * np.sqrt(1 + 1 / len(means))
    return bool(head.mean() > means.mean() + width)


def conbench(history: Values, head: Values) -> bool:
    """The look-back z-score: the best of the new run, five standard deviations over the best of
    the runs before."""
    bests = history.min(axis=(1, 2))
    return bool(head.min() > bests.mean() + _CONBENCH_Z * bests.std(ddof=1))
