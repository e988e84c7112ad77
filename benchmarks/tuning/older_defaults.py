"""The searcher of before an upgrade: its default schedules are the loops as written, shared out to
the threads."""

from typing import Any

from tunegate.compiler import searcher
from tunegate.compiler.schedules.unscheduled import with_parallel_loops
from tunegate.compiler.search import search

Request = searcher.Request
handle_request = searcher.handle_request


def with_loops_as_written(module: Any, target: Any) -> Any:
    """Returns the module with the older default schedules."""
    return with_parallel_loops(module, target)


search.with_default_schedule = with_loops_as_written  # type: ignore[attr-defined]
