"""The end of a run that measured: a line for each model goes to the history in the shared cache."""

from __future__ import annotations

import sys
import time

from tunegate.artifacts.verdicts import Report
from tunegate.edges.history_log import write_history
from tunegate.edges.shared_cache import open_store
from tunegate.stages.remember import remembered
from tunegate.toolbox import Workplace


def remember(report: Report, place: Workplace) -> None:
    """A history that cannot be written costs a line on the terminal."""
    now = time.time()
    release = place.repository.release(report.verdict.revisions.head)
    entries = remembered(report, at=int(now), release=release)
    cache = place.config.cache
    store = open_store(cache, root=place.repository.root)
    problem = write_history(store, cache, entries, int(now * 1000))
    if problem:
        sys.stderr.write(f"tunegate: {problem}\n")
