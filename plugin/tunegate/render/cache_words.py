"""Sentences on what the cache had as the run began, and what that was worth.

The counts are those of `verdict.json`: a report has one number for one thing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.cost import Cost
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import TuningSummary
from tunegate.plurals import plural
from tunegate.render.units import duration, money, size


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
