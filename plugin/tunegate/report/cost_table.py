"""The costs of all candidates in a few rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tunegate.artifacts.outcomes import CandidateCost, TaskOutcome, TuningOutcome
from tunegate.report.units import duration
from tunegate.tune.budget import total_energy
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
    """`seconds` are of the processes that did it, several at once; `usd` and `joules` are their
    share of the bill, None without a price or an energy counter."""

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
        groups[_what(cost)].append(cost)

    def row(what: str, seconds: float, candidates: int | None) -> SpendingRow:
        share = seconds / total
        usd = None if bill is None else bill * share
        joules = None if energy.joules is None else energy.joules * share
        return SpendingRow(what, candidates, seconds, share, usd, joules)

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
    known = [usd for usd in bills if usd is not None]
    return sum(known) if known and len(known) == len(bills) else None


def audit(outcomes: Sequence[TuningOutcome]) -> FilterAudit | None:
    """Returns the filter's audit, None if it has rejected nothing yet."""
    tasks = [task for outcome in outcomes for task in outcome.tasks]
    audited = [(cost, task) for task in tasks for cost in _audit_costs(task.costs)]
    if not audited:
        return None
    return FilterAudit(
        audited=len(audited), wrong=sum(_is_nearly_best(cost, task) for cost, task in audited)
    )


def audit_words(found: FilterAudit) -> str:
    """Returns the audit in a sentence."""
    were = "was" if found.audited == 1 else "were"
    return (
        f"Of {plural(found.audited, 'candidate')} that the filter had rejected and that {were} "
        f"measured all the same, {found.wrong} came within 2% of the best."
    )


def _audit_costs(costs: Iterable[CandidateCost]) -> list[CandidateCost]:
    return [cost for cost in costs if cost.pick == "audit" and cost.stage == "quick"]


def _is_nearly_best(cost: CandidateCost, task: TaskOutcome) -> bool:
    times = [
        c.milliseconds for c in task.costs if c.stage == "quick" and c.milliseconds is not None
    ]
    return cost.milliseconds is not None and cost.milliseconds <= NEARLY_BEST * min(times)


def _what(cost: CandidateCost) -> str:
    if cost.stage == "confirm":
        return _ROWS[3]
    if cost.status != "ok":
        return _ROWS[2]
    return _ROWS[0] if cost.improved else _ROWS[1]


def _seconds(cost: CandidateCost) -> float:
    return cost.build_seconds + cost.run_seconds
