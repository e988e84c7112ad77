"""The origin of the schedules of a build, by the share of its time that they cover."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.builds import Build
from tunegate.artifacts.verdicts import Report
from tunegate.plurals import plural
from tunegate.render.source_words import SOURCE_WORDS
from tunegate.render.units import share


def kernel_coverage(report: Report) -> Iterator[tuple[str, str]]:
    """(what, in words) for the head of every cell that was built."""
    for built in report.run.builds if report.run else ():
        if built.head is not None and built.head.error is None and built.head.tasks:
            cell = built.cell
            yield f"Schedules of {cell.model} on {cell.target}", _words(built.head)


def _words(build: Build) -> str:
    known = [task for task in build.tasks if task.ms is not None]
    total_ms = sum(task.weight * (task.ms or 0.0) for task in known)
    parts = []
    for source, word in SOURCE_WORDS.items():
        mine = [task for task in build.tasks if task.source == source]
        part_ms = sum(task.weight * (task.ms or 0.0) for task in mine)
        if mine:
            of_time = f" ({share(part_ms / total_ms)} of the time)" if part_ms else ""
            parts.append(f"{plural(len(mine), 'kernel')} {word}{of_time}")
    unmeasured = len(build.tasks) - len(known)
    return ", ".join(parts) + (f"; {unmeasured} not measured on their own" if unmeasured else "")
