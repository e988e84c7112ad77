"""MetaTune (Ryu and Sung, 2021): what was learned before, adapted by the task, at equal trials.

On measured tasks, an eighth left out at a time with all that shares a layer or a model with it.
Each way gets the same random candidates of a task and picks a batch after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from research.experience.judging.evaluation import BATCH, SHOTS, way_regrets
from research.experience.judging.folds import folds
from research.experience.judging.rankers import ADAPTED_TREES

from benchmarks.papers.headline import Figure
from tunegate.tune.prior import experience_of

WAYS = {"network": "network, meta-trained", "trees": "trees, corrected"}
"""The models that are adapted. Beside each there is one from scratch, and one frozen."""


def figures(scratch: Path) -> Iterator[Figure]:
    from research.experience.network.taught_network import ADAPTED_NETWORK  # noqa: PLC0415 -- needs jax

    tasks = experience_of("llvm")
    judged = way_regrets(folds(tasks), {}, ADAPTED_TREES | ADAPTED_NETWORK)
    means = {(one.way, one.shots): one.mean for one in judged if one.shots}
    here = "; ".join(f"{kind}, scratch and frozen: {over(means, kind)}" for kind in WAYS)
    yield Figure("few-shot", here, f"{len(tasks)} measured tasks, each left out once")


def over(means: Mapping[tuple[str, int], float], kind: str) -> str:
    """Both others over the adapted one, after all trials."""
    told = []
    for shots in SHOTS:
        adapted = means[WAYS[kind], shots]
        ratios = (means[f"{kind}, {way}", shots] / adapted for way in ("from scratch", "frozen"))
        told.append(f"{' and '.join(f'{each:.2f}' for each in ratios)} after {shots + BATCH}")
    return ", ".join(told)
