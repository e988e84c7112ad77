"""Records a run that measured or tuned, with or without a verdict: one line per model in the shared
cache's history."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.history import MAX_TEXT, HistoryEntry, RunFacts
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import Budget, Cost, TuningPlan
from tunegate.artifacts.tasks import CacheUse, Resolution
from tunegate.artifacts.verdicts import Report
from tunegate.ci.events import MAIN
from tunegate.ci.protocol import JobEvent
from tunegate.ci.registry import job_event, run_address
from tunegate.cli.unexpected import explain_error
from tunegate.config import Config
from tunegate.errors import TunegateError, was_cancelled
from tunegate.handover import read_outcomes
from tunegate.ports import Device
from tunegate.redaction import redact, secrets_of
from tunegate.report import history
from tunegate.system.cache.history_log import write_history
from tunegate.system.cache.shared_cache import open_shared_store, undelivered_store
from tunegate.system.git.repository import GitRepository
from tunegate.tools import RunContext
from tunegate.tune.budget import price_of

LEAST_SECONDS = 1.0
"""The seconds that a run without a plan must take to be recorded."""


def remember(
    report: Report, config: Config, repository: GitRepository, work_seconds: float = 0.0
) -> None:
    """Records a report. A history that cannot be written costs one line on the terminal.
    `work_seconds` is this process's work besides tuning, none if it only decided."""
    commit, prices = report.verdict.revisions.head, _prices(config)

    def entries(facts: RunFacts) -> tuple[HistoryEntry, ...]:
        return history.history_entries(report, facts, prices, work_seconds)

    _write(commit, config, repository, entries)


def seconds_besides_tuning(began: float, outcomes: Sequence[TuningOutcome]) -> float:
    """Returns the seconds since `began` (a reading of the clock) in which this process did not
    tune."""
    return max(0.0, time.monotonic() - began - sum(each.spent.seconds for each in outcomes))


def remember_warming(
    plan: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    shipped_tasks: history.Shipped,
    *,
    work_seconds: float,
    device: Device,
    config: Config,
    repository: GitRepository,
) -> None:
    """Records the costs of warming; `shipped_tasks` are the tasks that paid off."""

    def entries(facts: RunFacts) -> tuple[HistoryEntry, ...]:
        return history.warmed_entries(
            plan,
            outcomes,
            facts,
            _machine(device),
            shipped_tasks,
            usd_per_hour=_prices(config),
            work_seconds=work_seconds,
        )

    _write(plan.changes.revisions.head, config, repository, entries)


@contextmanager
def remembered_without_end(
    plan: TuningPlan,
    *,
    context: RunContext,
    config: Config,
    repository: GitRepository,
    before: Sequence[TuningOutcome] | None = None,
    began: float | None = None,
    least_seconds: float = 0.0,
) -> Iterator[float]:
    """Records what a run of this plan spent if it is cancelled, or fails after `least_seconds` or
    more. Its tuning is `before`, or else what the output directory has by then. It began at
    `began`, or now; that reading is yielded."""
    began = time.monotonic() if began is None else began
    try:
        yield began
    except (Exception, KeyboardInterrupt) as error:
        if time.monotonic() - began < least_seconds:
            raise
        with suppress(TunegateError, OSError):  # what ended the run is what is reported
            outcomes = read_outcomes(context.out, plan) if before is None else before
            end = history.Unfinished(
                status="cancelled" if was_cancelled(error) else "aborted",
                reason=_reason(error),
                gate_seconds=seconds_besides_tuning(began, outcomes if before is None else ()),
                usd_per_hour=_prices(config),
            )
            machine = _machine(context.device)

            def entries(facts: RunFacts) -> tuple[HistoryEntry, ...]:
                return history.unfinished_entries(plan, outcomes, facts, machine, end)

            _write(plan.changes.revisions.head, config, repository, entries)
        raise


@contextmanager
def remembered_before_plan(
    changes: ChangeSet,
    *,
    context: RunContext,
    config: Config,
    repository: GitRepository,
    least_seconds: float = LEAST_SECONDS,
) -> Iterator[float]:
    """Does the same until there is a plan; a mistake that is reported at once is not recorded.
    Yields when the run began, so that later records include opening and planning."""
    cache = CacheUse(location="", zone="", mode=config.cache.mode)
    nothing = TuningPlan(
        changes=changes,
        resolution=Resolution(tasks=(), cache=cache),
        shards=(),
        budget=Budget(seconds=None, trials=None),
        estimate=Cost(seconds=0.0, usd=None),
    )
    with remembered_without_end(
        nothing,
        context=context,
        config=config,
        repository=repository,
        before=(),
        least_seconds=least_seconds,
    ) as began:
        yield began


def _reason(error: BaseException) -> str:
    """Returns why a run ended, for the shared history. A cancel has no other reason: its message
    contains a path of this machine."""
    if was_cancelled(error):
        return "cancelled"
    text = str(error) if isinstance(error, TunegateError) else explain_error(error).problem
    return redact(text, secrets_of(os.environ))


def _prices(config: Config) -> dict[str, float | None]:
    return {target.name: price_of(config.budget, target) for target in config.targets}


def _machine(device: Device) -> history.TuningMachine:
    return history.TuningMachine(device.fingerprint(), device.environment())


def _write(
    commit: str,
    config: Config,
    repository: GitRepository,
    entries: Callable[[RunFacts], tuple[HistoryEntry, ...]],
) -> None:
    now, cache = time.time(), config.cache
    facts = run_facts(repository, commit, at=int(now))
    store = open_shared_store(cache, root=repository.root)
    spool = undelivered_store(cache, root=repository.root)
    problem = write_history(store, cache, entries(facts), int(now * 1000), spool)
    if problem:
        sys.stderr.write(f"tunegate: {problem}\n")


# The facts of this run: the repository, the change, the commit, and the page of its CI job.

_ADDRESS = re.compile(r"https?://[^\s@<>\"'`\\]+")


def run_facts(
    repository: GitRepository, commit: str, *, at: int, variables: Mapping[str, str] = os.environ
) -> RunFacts:
    """Returns the facts of a run that ended at `at` (seconds since 1970), with `commit` as its
    head."""
    event = job_event(variables)
    return RunFacts(
        at=at,
        repository=repository.name(),
        release=repository.release(commit),
        change=event.pull_request if event is not None else None,
        is_aside=_is_aside(event, repository, commit),
        authored=repository.authored_at(commit),
        run_url=_public_address(run_address(variables)),
    )


def _is_aside(event: JobEvent | None, repository: GitRepository, commit: str) -> bool:
    """Returns whether the head is outside of the default branch; a CI that lets the job write the
    main zone has said that it is on it."""
    if event is not None and event.zone == MAIN:
        return False
    has_request = event is not None and event.pull_request is not None
    return has_request or repository.is_beside_default(commit)


def _public_address(address: str) -> str:
    """Returns an address that anybody may see and follow, else ''."""
    return address if len(address) <= MAX_TEXT and _ADDRESS.fullmatch(address) else ""
