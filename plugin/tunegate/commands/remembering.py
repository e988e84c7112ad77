"""The end of a run that measured: a line for each model goes to the history in the shared cache."""

from __future__ import annotations

import sys
import time

from tunegate.artifacts.verdicts import Report
from tunegate.config import CacheConfig
from tunegate.edges.cache.history_log import write_history
from tunegate.edges.cache.shared_cache import open_shared_store
from tunegate.edges.git.repository import GitRepository
from tunegate.run_history.entries import history_entries


def remember(report: Report, cache: CacheConfig, repository: GitRepository) -> None:
    """A history that cannot be written costs a line on the terminal."""
    now = time.time()
    release = repository.release(report.verdict.revisions.head)
    entries = history_entries(report, at=int(now), release=release)
    store = open_shared_store(cache, root=repository.root)
    problem = write_history(store, cache, entries, int(now * 1000))
    if problem:
        sys.stderr.write(f"tunegate: {problem}\n")
