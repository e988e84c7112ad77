"""The end of a run that measured or tuned: a line for each model goes to the history in the shared
cache."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from tunegate.artifacts.history import HistoryEntry, RunFacts
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Report
from tunegate.config import CacheConfig, Config
from tunegate.edges.cache.history_log import write_history
from tunegate.edges.cache.shared_cache import open_shared_store
from tunegate.edges.git.repository import GitRepository
from tunegate.edges.run_facts import run_facts
from tunegate.ports import Device
from tunegate.run_history.entries import history_entries, warmed_entries
from tunegate.tuning.budget import price_of


def remember(report: Report, config: Config, repository: GitRepository) -> None:
    """A history that cannot be written costs a line on the terminal."""
    commit = report.verdict.revisions.head
    prices = {target.name: price_of(config.budget, target) for target in config.targets}
    _write(commit, config.cache, repository, lambda run: history_entries(report, run, prices))


def remember_warming(
    planned: TuningPlan,
    outcomes: Sequence[TuningOutcome],
    device: Device,
    config: CacheConfig,
    repository: GitRepository,
) -> None:
    """What was tuned and not compared costs money, too."""

    def entries(facts: RunFacts) -> tuple[HistoryEntry, ...]:
        machine = device.fingerprint(), device.environment()
        return warmed_entries(planned, outcomes, facts, *machine)

    _write(planned.changes.revisions.head, config, repository, entries)


def _write(
    commit: str,
    cache: CacheConfig,
    repository: GitRepository,
    entries: Callable[[RunFacts], tuple[HistoryEntry, ...]],
) -> None:
    now = time.time()
    facts = run_facts(repository, commit, at=int(now))
    store = open_shared_store(cache, root=repository.root)
    problem = write_history(store, cache, entries(facts), int(now * 1000))
    if problem:
        sys.stderr.write(f"tunegate: {problem}\n")
