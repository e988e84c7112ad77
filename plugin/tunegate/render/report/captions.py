"""Captions of plots, in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.measurements import CellMeasurement, Comparison, Launch
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.verdicts import Finding
from tunegate.gate.decision import EXPLAINED
from tunegate.gate.histogram import merged_histogram, quantile_ms, total
from tunegate.render.operators import Part, parts
from tunegate.render.units import difference_ms, share
from tunegate.wording.latency import milliseconds

_LAST = 0.99


def of_launches(comparison: Comparison, margin_percent: float) -> str:
    """The place of the interval, which is what decides."""
    change = comparison.change_percent
    dots = "A dot is a launch: base and head in fresh processes. The diamond is all of them"
    if change is None:
        return f"{dots}."
    if change.low > margin_percent:
        said = "the interval lies wholly over the margin, so the head is slower"
    elif change.high < margin_percent:
        said = "the interval lies wholly under the margin, so the head passes"
    else:
        said = "the interval reaches over the margin, so more launches would have to decide"
    return f"{dots}: {said}."


def of_latencies(finding: Finding) -> str:
    """Returns the caption of the latencies: the meaning of each bar, and how it was measured."""
    told = "Medians of one inference. Each dot is the median of one launch, a process of its own"
    if finding.reference_ms is None:
        return f"{told}."
    return f"{told}; ONNX Runtime was measured by itself, for comparison, and decides nothing."


def of_distribution(launches: Sequence[Launch]) -> str:
    """The slow end, which the median hides."""
    base = merged_histogram([each.base_times for each in launches if each.base_times is not None])
    head = merged_histogram([each.head_times for each in launches if each.head_times is not None])
    if not total(base) or not total(head):
        return ""
    before, after = (milliseconds(quantile_ms(each, _LAST)) for each in (base, head))
    return (
        f"A curve further right is slower. {_LAST:.0%} of the inferences took at most {before} "
        f"with the base, and {after} with the head."
    )


def of_waterfall(finding: Finding) -> str:
    """The layer that moved most, and what the bars leave out."""
    first, *_ = found = parts(finding.differences)
    what = "what slower layers lost" if first.difference_ms > 0 else "what faster layers gained"
    return (
        f"{first.name} moved most: {difference_ms(first.difference_ms)}, {share(first.share)} "
        f"of {what}. Layers were timed {_how_timed(found)}; what that does not explain is "
        "“everything else”."
    )


def of_layers(finding: Finding, measured: CellMeasurement | None, margin_percent: float) -> str:
    """Returns the caption of the layers: how they were timed, or why they were not; nothing where a
    note says it, or none was to be timed."""
    found, change = parts(finding.differences), finding.change_percent
    if found:
        return f"Times are of all calls of one inference, {_how_timed(found)}."
    if measured is None or change is None or measured.task_ms:
        return ""
    if abs(change.center) >= EXPLAINED * margin_percent:
        return ""
    return "Layers are timed where the latency moved by half the margin or more."


def _how_timed(layers: Sequence[Part]) -> str:
    if any(layer.is_alone for layer in layers):
        return "each alone, by tuning, and not inside the model"
    return "inside the model, by a profile of each build"


def of_candidates() -> str:
    """Returns the caption of the candidates: the good corner."""
    return (
        "Lower left is better: fast and exact. The dashed line joins those that no other beats in "
        "both. Numbers are rows of the table of candidates."
    )


def of_tuning(outcome: TuningOutcome) -> str:
    """Returns the caption of tuning: its progress, and what it estimates."""
    (_, first), *_, (_, last) = outcome.curve
    return (
        f"From {milliseconds(first)} to {milliseconds(last)}: an estimate of the compiled model, "
        "the sum of its kernels timed alone. It is no latency of base or head."
    )
