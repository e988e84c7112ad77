"""Chooses the samples worth compiling: the best by a cheap score, and a few others.

Rejected samples are audited: a share of every batch is drawn from them at random, and their results
tell how often the filter is wrong. Trimmer (IEEE CLOUD 2022) replaces poor candidates by likelier
ones; the audit is added here.
"""

import random
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, NamedTuple

AUDIT_SHARE = 0.1
MIN_EVIDENCE = 8
"""The measured candidates of a task before anything is rejected."""
MIN_CORRELATION = 0.2
"""A score with a lower rank correlation, on candidates that it was not fitted to, decides
nothing."""

Reason = Literal["random", "predicted", "audit"]


class Pick(NamedTuple):
    """`sample` is its index."""

    sample: int
    reason: Reason


def picks(
    scores: Sequence[float] | None,
    alike: Sequence[Hashable],
    count: int,
    rng: random.Random,
) -> Iterator[Pick]:
    """Returns every sample once, in the order in which to try them, because some will not apply.
    Higher scores are better; without scores the order is random. `count` is the size of the batch:
    samples beyond it are rejected. An audited sample never comes first, because the first may be
    all that a task gets. Of samples that are `alike` a batch takes the best one only: where the
    score is wrong, it is wrong about all of them."""
    if scores is None:
        order = rng.sample(range(len(alike)), len(alike))
        yield from (Pick(index, "random") for index in order)
        return
    by_score = sorted(range(len(scores)), key=lambda index: -scores[index])
    best_of_its_kind = {alike[index]: index for index in reversed(by_score)}
    promising = sorted(best_of_its_kind.values(), key=lambda index: -scores[index])[:count]
    rejects = sorted(set(by_score) - set(promising))
    rng.shuffle(rejects)
    if promising:
        yield Pick(promising.pop(0), "predicted")
    while promising or rejects:
        is_audit = bool(rejects) and (not promising or rng.random() < AUDIT_SHARE)
        if is_audit:
            yield Pick(rejects.pop(), "audit")
        else:
            yield Pick(promising.pop(0), "predicted")


def rank_correlation(first: Sequence[float], other: Sequence[float]) -> float:
    """Returns Spearman's correlation, as Pearson's of mid-ranks. 0 if either does not vary."""
    a, b = _ranks(first), _ranks(other)
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
