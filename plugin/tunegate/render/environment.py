"""The comparison and its machine."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.changes import ModelChange, ModelPin
from tunegate.artifacts.verdicts import Report
from tunegate.plurals import plural
from tunegate.render.coverage import kernel_coverage

SHOWN_REVISION = 12
MAX_NAMED = 20


def facts(report: Report) -> tuple[tuple[str, str], ...]:
    """(name, value) of everything a reader needs to see the same again."""
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
    """Returns the number of configured models that the change does not touch, and the names of the
    first of them."""
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
        said = f"{shard.device.name} (machine {shard.machine}), seed {shard.seed}"
        yield f"Measuring shard {shard.shard} on {shard.target}", said
    yield from sorted(report.run.environment.items())
