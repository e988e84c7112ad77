"""The comparison and its machine."""

from collections.abc import Iterator

from tunegate.artifacts.builds import Build
from tunegate.artifacts.changes import ModelChange, ModelPin
from tunegate.artifacts.verdicts import Report
from tunegate.report.operators import SOURCE_WORDS
from tunegate.report.units import share
from tunegate.wording import plural

SHOWN_REVISION = 12
MAX_NAMED = 20


def facts(report: Report) -> tuple[tuple[str, str], ...]:
    """Returns (name, value) of everything a reader needs to reproduce the result."""
    return (*_revisions(report), *_changes(report), *kernel_coverage(report), *_machine(report))


def _revisions(report: Report) -> Iterator[tuple[str, str]]:
    revisions = report.verdict.revisions
    if revisions.pins:
        yield from zip(("Production", "Candidate"), map(_pin, revisions.pins), strict=True)
    else:
        yield "Base", revisions.base[:SHOWN_REVISION] if revisions.base else "none"
        yield "Head", revisions.head[:SHOWN_REVISION]
    if revisions.reason:
        yield "Chosen by", revisions.reason
    yield "Margin", f"{report.verdict.margin_percent:g}%"


def _pin(pin: ModelPin) -> str:
    return ", ".join(filter(None, (pin.address, pin.version, f"sha256:{pin.sha256}")))


def _changes(report: Report) -> Iterator[tuple[str, str]]:
    for change in report.changes.models:
        yield "Change", f"{change.path}: {_kind(change)}"
    if report.changes.unchanged:
        yield "Not touched", unchanged_names(report)


def unchanged_names(report: Report, most: int = MAX_NAMED) -> str:
    """Returns the number of configured models that the change does not touch, and the first
    names."""
    names = report.changes.unchanged
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{plural(len(names), 'model')}: {', '.join(names[:most])}{more}"


def _kind(change: ModelChange) -> str:
    kind = f"{change.kind}, {change.change}" if change.change else change.kind
    return f"{kind} ({change.reason})" if change.reason else kind


def _machine(report: Report) -> Iterator[tuple[str, str]]:
    if report.run is None:
        return
    device = report.run.device
    yield "Device", device.name
    yield "Units", str(device.units)
    yield "Clocks", device.clocks
    if device.driver:
        yield "Driver", device.driver
    if report.run.seed:
        yield "Seed", report.run.seed
    for shard in report.run.shards:
        text = f"{shard.device.name} (machine {shard.machine}), seed {shard.seed}"
        yield f"Measuring shard {shard.shard} on {shard.target}", text
    yield from sorted(report.run.environment.items())


# Where the schedules of a build come from, by the share of its time that they cover.


def kernel_coverage(report: Report) -> Iterator[tuple[str, str]]:
    """Yields (build, text) for the head of every built cell."""
    for built in report.run.builds if report.run else ():
        if built.head is not None and built.head.error is None and built.head.tasks:
            cell = built.cell
            yield f"Schedules of {cell.model} on {cell.target}", _words(built.head)


def _words(build: Build) -> str:
    """Returns the shares of the time by source of schedules; the numbers of tasks are in the line
    on tuning."""
    total_ms = sum(task.weight * (task.ms or 0.0) for task in build.tasks)
    timed: list[str] = []
    untimed: list[str] = []
    for source, word in SOURCE_WORDS.items():
        source_tasks = [task for task in build.tasks if task.source == source]
        part_ms = sum(task.weight * (task.ms or 0.0) for task in source_tasks)
        if part_ms:
            of_time = "" if timed else " of the time"
            timed.append(f"{share(part_ms / total_ms)}{of_time} {word}")
        elif source_tasks:
            untimed.append(word)
    untimed_text = f"not timed alone: {', '.join(untimed)}" if untimed else ""
    return "; ".join(filter(None, (", ".join(timed), untimed_text)))
