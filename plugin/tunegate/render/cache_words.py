"""What the cache had as the run began, and what that was worth, in sentences.

The counts are those of `verdict.json`: a report has one number for one thing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.cost import Cost
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import TuningSummary
from tunegate.plurals import plural
from tunegate.render.units import duration, energy, money, size


def cache_traffic(cache: CacheUse) -> str:
    """The requests of this run, without a full stop."""
    price = "" if cache.usd is None else f", {money(cache.usd)}"
    requests = plural(cache.requests, "request")
    return f"{requests}, {size(cache.bytes_read)}, {duration(cache.seconds)}{price}"


def cache_words(tuning: TuningSummary, cache: CacheUse, saved: Cost | None) -> str:
    """Sentences; '' where no task was looked up."""
    if not tuning.tasks:
        return ""
    first = f"Of {plural(tuning.tasks, 'task')}, as the run began: {', '.join(_had(tuning, cache))}"
    return f"{first}.{_worth(tuning, saved)}"


def _had(tuning: TuningSummary, cache: CacheUse) -> Iterator[str]:
    yield f"{tuning.exact} tuned before"
    if tuning.unfinished:
        yield f"{tuning.unfinished} begun by an earlier run"
    if near := tuning.transfer - tuning.unfinished:
        yield f"{near} with schedules of other shapes to begin with"
    if tuning.miss:
        yield f"{tuning.miss} unknown{_reasons(cache)}"


def _reasons(cache: CacheUse) -> str:
    told = [f"{number} {why}" for why, number in sorted(cache.misses.items())]
    return f" ({', '.join(told)})" if told else ""


def _worth(tuning: TuningSummary, saved: Cost | None) -> str:
    """How long the tuning of what was tuned before would have taken in this run."""
    if saved is None or saved.seconds < 1 or not tuning.exact:
        return ""
    known = [] if saved.usd is None else [money(saved.usd)]
    known += [] if saved.joules is None else [energy(saved.joules, saved.energy_source)]
    price = f" ({', '.join(known)})" if known else ""
    what = "it" if tuning.exact == 1 else f"these {tuning.exact}"
    return f" Tuning {what} again would take about {duration(saved.seconds)}{price}."
