"""Sentences on what tuning did and cost, and on the results of all tasks."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.plans import Cost
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import TuningSummary
from tunegate.report.units import duration, energy, money, size
from tunegate.wording import plural


def tuning_words(tuning: TuningSummary) -> str:
    """Two sentences, without the last full stop. The numbers of tasks add up to the first one."""
    if not tuning.tasks:
        return "nothing here is compiled"
    return f"{_done(tuning)}. {_parts(tuning)}"


def _done(tuning: TuningSummary) -> str:
    """The trials, with their time and price."""
    trials = plural(tuning.trials, "trial") if tuning.trials else "no trial"
    spent = f" in {duration(tuning.seconds)}" if tuning.trials or tuning.seconds >= 1 else ""
    price = _price(tuning) if tuning.trials else ""
    return f"{trials}{spent}{price}, {tuning_ended(tuning)}"


def _price(tuning: TuningSummary) -> str:
    known = [money(tuning.usd)] if tuning.usd is not None else []
    known += [energy(tuning.joules)] if tuning.joules is not None else []
    return "".join(f", {each}" for each in known)


def _parts(tuning: TuningSummary) -> str:
    """Returns the results of all tasks in words."""
    if tuning.exact == tuning.tasks:
        all_of_them = f"All {tuning.tasks} tasks were known before"
        return "The only task was known before" if tuning.tasks == 1 else all_of_them
    parts = {
        "known before": tuning.exact,
        "tuned now": tuning.tuned,
        "measured once": tuning.measured,
        "begun": tuning.begun,
        "left to tunegate warm": tuning.waiting,
    }
    parts["not tuned"] = tuning.tasks - sum(parts.values())
    told = ", ".join(f"{number} {part}" for part, number in parts.items() if number > 0)
    return f"Of {plural(tuning.tasks, 'task')}: {told}"


# The reasons why tuning or measuring ended, in words.

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


# Sentences on what the cache had as the run began, and what that was worth. The counts are those
# of `verdict.json`: a report has one number for one thing.


def cache_traffic(cache: CacheUse) -> str:
    """The requests of this run, without a full stop."""
    price = "" if cache.usd is None else f", {money(cache.usd)}"
    requests = plural(cache.requests, "request")
    return f"{requests}, {size(cache.bytes_read)}, {duration(cache.seconds)}{price}"


def cache_words(tuning: TuningSummary, cache: CacheUse, saved: Cost | None) -> str:
    """Sentences; '' where no task was looked up."""
    if not tuning.tasks:
        return ""
    others = ", ".join(_others(tuning, cache))
    rest = f"; of the other {tuning.tasks - tuning.exact}: {others}" if others else ""
    was = "was" if tuning.exact == 1 else "were"
    known = f"{tuning.exact} of {plural(tuning.tasks, 'task')} {was} known before"
    if not tuning.exact:
        return f"None of {plural(tuning.tasks, 'task')} was known before: {others}."
    return f"{known}{rest}.{_worth(tuning, saved)}"


def _others(tuning: TuningSummary, cache: CacheUse) -> Iterator[str]:
    """Yields phrases on what the cache had besides exact hits."""
    if tuning.unfinished:
        yield f"{tuning.unfinished} begun by an earlier run"
    if near := tuning.transfer - tuning.unfinished:
        yield f"{near} with schedules of other shapes"
    if tuning.miss:
        yield f"{tuning.miss} unknown{_reasons(cache)}"


def _reasons(cache: CacheUse) -> str:
    told = [f"{number} {why}" for why, number in sorted(cache.misses.items())]
    return f" ({', '.join(told)})" if told else ""


def _worth(tuning: TuningSummary, saved: Cost | None) -> str:
    """The least that the tuning of what was known before took, by its records."""
    if saved is None or saved.seconds < 1 or not tuning.exact:
        return ""
    price = "" if saved.usd is None else f" ({money(saved.usd)})"
    what = "it" if tuning.exact == 1 else f"these {tuning.exact}"
    return f" Tuning {what} took {duration(saved.seconds)}{price} or more, by the records."
