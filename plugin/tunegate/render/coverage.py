"""The origin of the schedules of a build, by the share of its time that they cover."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.builds import Build
from tunegate.artifacts.verdicts import Report
from tunegate.render.source_words import SOURCE_WORDS
from tunegate.render.units import share


def kernel_coverage(report: Report) -> Iterator[tuple[str, str]]:
    """(what, in words) for the head of every cell that was built."""
    for built in report.run.builds if report.run else ():
        if built.head is not None and built.head.error is None and built.head.tasks:
            cell = built.cell
            yield f"Schedules of {cell.model} on {cell.target}", _words(built.head)


def _words(build: Build) -> str:
    """Returns the shares of the time by the source of schedules: the numbers of tasks are in the
    line on tuning."""
    total_ms = sum(task.weight * (task.ms or 0.0) for task in build.tasks)
    timed: list[str] = []
    untimed: list[str] = []
    for source, word in SOURCE_WORDS.items():
        mine = [task for task in build.tasks if task.source == source]
        part_ms = sum(task.weight * (task.ms or 0.0) for task in mine)
        if part_ms:
            of_time = "" if timed else " of the time"
            timed.append(f"{share(part_ms / total_ms)}{of_time} {word}")
        elif mine:
            untimed.append(word)
    told = f"not timed alone: {', '.join(untimed)}" if untimed else ""
    return "; ".join(filter(None, (", ".join(timed), told)))
