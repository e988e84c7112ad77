"""The samples that are worth compiling: the best by a cheap score, and a few of the others.

What the score rejects is audited: a share of every batch is drawn at random from the rejected ones,
and what they turn out to be says how often the filter is wrong. (Trimmer, IEEE CLOUD 2022, replaces
poor candidates by likelier ones; the audit is ours.)
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, NamedTuple

AUDIT_SHARE = 0.1
EXPLORING_SHARE = 0.5
"""The share of rejected samples where a search is to teach others: with fewer, what is bad is not
known to be so (exploration-biased code sampling, One-Shot Tuner, CC 2022)."""
MIN_EVIDENCE = 8
"""Measured candidates of a task before anything is rejected."""
MIN_CORRELATION = 0.2
"""Rank correlation on candidates that it was not fitted to, below which a score decides nothing."""

Reason = Literal["random", "predicted", "audit"]


class Pick(NamedTuple):
    """`sample` is its index."""

    sample: int
    reason: Reason


def picks(
    scores: Sequence[float] | None,
    alike: Sequence[Hashable],
    wanted: int,
    rng: random.Random,
    audit_share: float = AUDIT_SHARE,
) -> Iterator[Pick]:
    """Every sample once, in the order in which to try them: some will not apply. Higher scores are
    better; without scores the order is random. `wanted` is how many the batch takes: a sample that
    would not be among them is rejected. The first is never one of these: it may be all that a task
    gets. Of samples that are `alike` a batch takes the best only: where the scores are wrong, they
    are wrong about all of them."""
    if scores is None:
        order = rng.sample(range(len(alike)), len(alike))
        yield from (Pick(index, "random") for index in order)
        return
    ranked = sorted(range(len(scores)), key=lambda index: -scores[index])
    best_of_its_kind = {alike[index]: index for index in reversed(ranked)}
    kept = sorted(best_of_its_kind.values(), key=lambda index: -scores[index])[:wanted]
    rejected = sorted(set(ranked) - set(kept))
    rng.shuffle(rejected)
    if kept:
        yield Pick(kept.pop(0), "predicted")
    while kept or rejected:
        is_audit = bool(rejected) and (not kept or rng.random() < audit_share)
        if is_audit:
            yield Pick(rejected.pop(), "audit")
        else:
            yield Pick(kept.pop(0), "predicted")


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's, by the Pearson correlation of mid-ranks; 0 where either does not vary."""
    a, b = _ranks(one), _ranks(other)
    middle = (len(a) - 1) / 2
    covariance = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    spread = sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b)
    return float(covariance / spread**0.5) if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in range(first, last + 1):
            ranks[order[place]] = (first + last) / 2
        first = last + 1
    return ranks
