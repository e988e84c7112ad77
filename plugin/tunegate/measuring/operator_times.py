"""Times of each operator inside the model, of base and head in turn."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunegate.bench_ports import Benchmarker

_TURNS = ("base", "head", "head", "base")
"""The order of turns, in which a drift of the machine affects both sides alike."""


def operator_times(base: Path, head: Path, benchmarker: Benchmarker) -> dict[str, dict[str, float]]:
    """Milliseconds of one inference, by side and operator, of two
    artifacts. Raises MeasurementError."""
    artifacts = {"base": base, "head": head}
    found: dict[str, list[Mapping[str, float]]] = {side: [] for side in artifacts}
    for side in _TURNS:
        found[side].append(benchmarker.operators_ms(artifacts[side]))
    return {side: _mean_of_each(times) for side, times in found.items()}


def _mean_of_each(times: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        operator: statistics.fmean(each[operator] for each in times if operator in each)
        for operator in times[0]
    }
