"""The history as Prometheus text: the latest of each model, and the sums of the runs that were
read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from tunegate.artifacts.history import HistoryEntry, ModelCost
from tunegate.render.escape import drawn_as_text

_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_FAILED = 1.0
Labels = tuple[tuple[str, str], ...]


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. `value` is None where an entry, or a cost, does not have it."""

    name: str
    help: str


class LatestGauge(Gauge, frozen=True, kw_only=True):
    """What the latest entry of a model on a target of a device says."""

    value: Callable[[HistoryEntry], float | None]


class SummedGauge(Gauge, frozen=True, kw_only=True):
    """A sum over the runs that were read, of a model on a target."""

    value: Callable[[ModelCost], float | None]


LATEST = (
    LatestGauge(
        name="tunegate_latency_seconds",
        help="Latency of the head in the latest run.",
        value=lambda entry: None if entry.head_ms is None else entry.head_ms / 1000,
    ),
    LatestGauge(
        name="tunegate_base_latency_seconds",
        help="Latency of the base in the latest run.",
        value=lambda entry: None if entry.base_ms is None else entry.base_ms / 1000,
    ),
    LatestGauge(
        name="tunegate_change_ratio",
        help="Change of the head against the base in the latest run, 0.01 being one percent.",
        value=lambda e: None if e.change_percent is None else e.change_percent.center / 100,
    ),
    LatestGauge(
        name="tunegate_failed",
        help="1 where the latest run failed the gate, else 0.",
        value=lambda entry: _FAILED if entry.status == "fail" else 0.0,
    ),
    LatestGauge(
        name="tunegate_last_run_timestamp_seconds",
        help="When the latest run ended.",
        value=lambda entry: float(entry.at),
    ),
)
SUMMED = (
    SummedGauge(name="tunegate_tasks", help="Tasks looked up.", value=lambda cost: cost.tasks),
    SummedGauge(name="tunegate_hits", help="Tasks that the cache had.", value=lambda c: c.hits),
    SummedGauge(name="tunegate_trials", help="Candidates tried.", value=lambda cost: cost.trials),
    SummedGauge(
        name="tunegate_tuning_seconds", help="Time spent on tuning.", value=lambda c: c.seconds
    ),
    SummedGauge(name="tunegate_tuning_usd", help="Dollars spent on tuning.", value=lambda c: c.usd),
    SummedGauge(
        name="tunegate_gate_seconds",
        help="Time spent on building what ships and measuring it.",
        value=lambda cost: cost.gate_seconds,
    ),
    SummedGauge(
        name="tunegate_gate_usd",
        help="Dollars spent on building what ships and measuring it.",
        value=lambda cost: cost.gate_usd,
    ),
    SummedGauge(
        name="tunegate_saved_seconds",
        help="Tuning that hits made needless.",
        value=lambda cost: cost.saved_seconds,
    ),
    SummedGauge(
        name="tunegate_saved_usd",
        help="Dollars of tuning that hits made needless.",
        value=lambda cost: cost.saved_usd,
    ),
)
RUNS = Gauge(name="tunegate_runs_read", help="Runs that the sums are over.")
METRICS: tuple[Gauge, ...] = (*LATEST, *SUMMED, RUNS)


def prometheus_text(
    entries: Sequence[HistoryEntry], sums: Callable[[Sequence[ModelCost]], ModelCost]
) -> str:
    """The text that a textfile collector reads: no timestamps, each metric once for its labels.
    `sums` adds costs up."""
    latest = _latest(entries)
    costs = _costs(entries, sums)
    lines: list[str] = []
    for gauge in LATEST:
        lines += _metric(gauge, {labels: gauge.value(e) for labels, e in latest.items()})
    for summed in SUMMED:
        lines += _metric(summed, {labels: summed.value(c) for labels, c in costs.items()})
    runs = {(entry.at, entry.commit, entry.repository) for entry in entries}
    lines += _metric(RUNS, {(): float(len(runs))})
    return "".join(f"{line}\n" for line in lines)


def _latest(entries: Iterable[HistoryEntry]) -> dict[Labels, HistoryEntry]:
    measured = (entry for entry in entries if entry.head_ms is not None)
    return {
        _labels(entry, device=entry.device): entry
        for entry in sorted(measured, key=lambda each: each.at)
    }


def _costs(
    entries: Iterable[HistoryEntry], sums: Callable[[Sequence[ModelCost]], ModelCost]
) -> Mapping[Labels, ModelCost]:
    groups: dict[Labels, list[ModelCost]] = defaultdict(list)
    for entry in entries:
        if entry.cost is not None:
            groups[_labels(entry)].append(entry.cost)
    return {labels: sums(group) for labels, group in groups.items()}


def _labels(entry: HistoryEntry, **more: str) -> Labels:
    found = {
        "repository": entry.repository,
        "model": entry.model,
        "target": entry.target,
        **more,
    }
    return tuple((name, drawn_as_text(value)) for name, value in found.items())


def _metric(gauge: Gauge, values: Mapping[Labels, float | None]) -> Iterator[str]:
    known = {labels: value for labels, value in values.items() if value is not None}
    if not known:
        return
    yield f"# HELP {gauge.name} {gauge.help}"
    yield f"# TYPE {gauge.name} gauge"
    for labels, value in sorted(known.items()):
        yield f"{gauge.name}{_written(labels)} {value:.10g}"


def _written(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return "".join(_ESCAPED.get(each, each) for each in value)
