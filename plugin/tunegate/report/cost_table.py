"""The costs of all candidates in a few rows, and what the cache and the filter saved."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from tunegate.artifacts.outcomes import CandidateCost, TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import Cost, TuningPlan, total_energy
from tunegate.report.units import duration
from tunegate.wording import plural

NEARLY_BEST = 1.02
"""The ratio to a task's best up to which a candidate was worth measuring."""
_ROWS = (
    "candidates that made a task faster",
    "candidates that did not",
    "candidates that failed",
    "finalists, measured again",
    "finding candidates",
)


class SpendingRow(msgspec.Struct, frozen=True):
    """`seconds` add up the processes that did the work, some of them at once; `usd` and `joules`
    are their share of the bill, None without a price or an energy counter."""

    what: str
    candidates: int | None
    seconds: float
    share: float
    usd: float | None
    joules: float | None = None


class FilterAudit(msgspec.Struct, frozen=True, kw_only=True):
    """An audit of the filter: how many rejected candidates were measured anyway, and how many of
    those came within 2% of their task's best."""

    audited: int
    wrong: int


def spending(outcomes: Sequence[TuningOutcome]) -> tuple[SpendingRow, ...]:
    """Returns the rows, none if nothing was spent."""
    costs = [cost for outcome in outcomes for task in outcome.tasks for cost in task.costs]
    searching = sum(task.search_seconds for outcome in outcomes for task in outcome.tasks)
    total = sum(_seconds(cost) for cost in costs) + searching
    bill, energy = _bill(outcomes), total_energy([outcome.spent for outcome in outcomes])
    if not total:
        return ()
    groups: dict[str, list[CandidateCost]] = {what: [] for what in _ROWS}
    for cost in costs:
        groups[_cost_row(cost)].append(cost)

    def row(name: str, seconds: float, candidates: int | None) -> SpendingRow:
        share = seconds / total
        usd = None if bill is None else bill * share
        joules = None if energy.joules is None else energy.joules * share
        return SpendingRow(name, candidates, seconds, share, usd, joules)

    *measuring, search = groups
    rows = (row(what, sum(map(_seconds, groups[what])), len(groups[what])) for what in measuring)
    return (*rows, row(search, searching, None))


def spending_words(outcomes: Sequence[TuningOutcome]) -> str:
    """Returns which time the table adds up, '' if nothing was spent."""
    wall = sum(outcome.spent.seconds for outcome in outcomes)
    if not spending(outcomes):
        return ""
    return (
        "Worker time adds up processes that run side by side. Tuning took "
        f"{duration(wall)} of wall-clock time, which the budget and the bill count."
    )


def _bill(outcomes: Sequence[TuningOutcome]) -> float | None:
    """Returns the sum of the costs in USD, None if one is unknown."""
    bills = [outcome.spent.usd for outcome in outcomes]
    prices = [usd for usd in bills if usd is not None]
    return sum(prices) if prices and len(prices) == len(bills) else None


def audit(outcomes: Sequence[TuningOutcome]) -> FilterAudit | None:
    """Returns the filter's audit, None if it has rejected nothing yet."""
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    audited = [(cost, task) for task in tasks for cost in _audit_costs(task.costs)]
    if not audited:
        return None
    return FilterAudit(
        audited=len(audited), wrong=sum(_is_nearly_best(cost, task) for cost, task in audited)
    )


def audit_words(audit: FilterAudit) -> str:
    """Returns the audit in a sentence."""
    were = "was" if audit.audited == 1 else "were"
    return (
        f"Of {plural(audit.audited, 'candidate')} that the filter had rejected and that {were} "
        f"measured all the same, {audit.wrong} came within 2% of the best."
    )


def _audit_costs(costs: Iterable[CandidateCost]) -> list[CandidateCost]:
    return _quick_costs(costs, "audit")


def _quick_costs(costs: Iterable[CandidateCost], pick: str) -> list[CandidateCost]:
    return [cost for cost in costs if cost.stage == "quick" and cost.pick == pick]


def _is_nearly_best(cost: CandidateCost, task: TaskOutcome) -> bool:
    times = [
        c.milliseconds for c in task.costs if c.stage == "quick" and c.milliseconds is not None
    ]
    return cost.milliseconds is not None and cost.milliseconds <= NEARLY_BEST * min(times)


def _cost_row(cost: CandidateCost) -> str:
    if cost.stage == "confirm":
        return _ROWS[3]
    if cost.status != "ok":
        return _ROWS[2]
    return _ROWS[0] if cost.improved else _ROWS[1]


def _seconds(cost: CandidateCost) -> float:
    return cost.build_seconds + cost.run_seconds


# What the cache and the filter save. Both are estimates.
#
# Trimmer (IEEE CLOUD 2022) measures the energy that filter and early stop save by runs with and
# without them. A run here has no twin without them, so each saving is estimated from what was
# measured. An early stop is not counted: the rest of a cap might not have been spent anyway.

_FEWEST_HITS = 3
"""With fewer faster ones among the rejected candidates, their rate means nothing."""
_LEAST_SECONDS = 1.0

SavedBy = Literal["cache", "filter"]


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """Machine time that was not spent, and what it would have cost."""

    by: SavedBy
    cost: Cost


def savings(plan: TuningPlan | None, outcomes: Sequence[TuningOutcome]) -> tuple[Saving, ...]:
    """Returns the savings of a second or more."""
    costs: tuple[tuple[SavedBy, Cost | None], ...] = (
        ("cache", plan.saved if plan else None),
        ("filter", _by_filter(outcomes)),
    )
    return tuple(
        Saving(by=by, cost=cost)
        for by, cost in costs
        if cost is not None and cost.seconds >= _LEAST_SECONDS
    )


def _by_filter(outcomes: Sequence[TuningOutcome]) -> Cost | None:
    """Returns the cost of finding as many improvements among rejected candidates, at the rate that
    an audit of these measured. None if the audit found too few."""
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    every = [cost for task in tasks for cost in task.costs]
    predicted, rejected = _quick_costs(every, "predicted"), _audit_costs(every)
    hits = sum(cost.improved for cost in rejected)
    if hits < _FEWEST_HITS or not predicted:
        return None
    candidates = sum(cost.improved for cost in predicted) * len(rejected) / hits
    total = sum(task.search_seconds for task in tasks) + sum(map(_seconds, every))
    more = (candidates - len(predicted)) * sum(map(_seconds, predicted)) / len(predicted)
    spent = _sum([outcome.spent for outcome in outcomes])
    return None if spent is None else _scale_cost(spent, more / total)


def _scale_cost(cost: Cost, by: float) -> Cost:
    return Cost(
        seconds=max(0.0, cost.seconds * by),
        usd=None if cost.usd is None else max(0.0, cost.usd * by),
        joules=None if cost.joules is None else max(0.0, cost.joules * by),
        energy_source=cost.energy_source,
    )


def _sum(costs: Sequence[Cost]) -> Cost | None:
    """Returns the sum. Money and joules need to be present in all costs."""
    if not costs:
        return None
    usd = [cost.usd for cost in costs if cost.usd is not None]
    energy = total_energy(costs)
    return Cost(
        seconds=sum(cost.seconds for cost in costs),
        usd=sum(usd) if len(usd) == len(costs) else None,
        joules=energy.joules,
        energy_source=energy.source,
    )
