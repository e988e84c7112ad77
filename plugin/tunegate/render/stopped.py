"""The reasons why tuning or measuring ended, in words."""

from __future__ import annotations

from tunegate.artifacts.verdicts import TuningSummary

STOPPED_WORDS = {
    "finished": "finished",
    "converged": "no more to gain",
    "target-latency": "fast enough",
    "exact": "known before",
    "budget": "budget spent",
    "seconds": "time budget spent",
    "usd": "money budget spent",
    "trials": "trial budget spent",
    "cancelled": "cancelled",
    "failed": "failed",
    "lost": "a shard was lost",
    "not-started": "not started",
    "shared": "left to tunegate warm",
    "behind": "too far behind another runtime",
    "decided": "decided",
    "hopeless": "too close to decide",
    "disturbed": "the machine does not hold still",
    "identical": "identical builds",
    "single": "head only",
    "invalid": "machine unfit",
    "error": "error",
}


_LIMITS = ("seconds", "usd", "trials")
_EARLY_ENDS = {
    "finished": "ended early: nothing more to try",
    "converged": "ended early: no task promised budget.min-gain-percent-per-minute any more",
    "target-latency": "ended early: budget.target-latency-ms is reached",
}


def tuning_ended(tuning: TuningSummary) -> str:
    """Returns why the whole of tuning ended."""
    if tuning.exact + tuning.waiting == tuning.tasks:
        return "nothing to tune"
    if not tuning.trials and tuning.stopped in _LIMITS:
        return "too short for a trial" if tuning.seconds >= 1 else "no budget for a trial"
    if tuning.trials and tuning.stopped in _EARLY_ENDS:
        return _EARLY_ENDS[tuning.stopped]
    return stopped_words(tuning.stopped)


def stopped_words(stopped: str) -> str:
    """The word of an artifact for people; one we do not know stays as it is."""
    return STOPPED_WORDS.get(stopped, stopped)
