"""Made-up launches whose truth is known."""

from __future__ import annotations

import numpy as np

from research.gate_rules.recorded import RecordedSeries, Times


def make_times(
    launches: int = 200,
    *,
    pairs: int = 12,
    inferences: int = 5,
    spread: float = 0.004,
    seed: int = 1,
) -> Times:
    """Each process has a speed of its own; blocks vary a little."""
    rng = np.random.default_rng(seed)
    process = rng.normal(0.0, spread, (launches, 1, 2, 1))
    block = rng.normal(0.0, 0.002, (launches, pairs, 2, inferences))
    return np.exp(process + block)


def make_series(launches: int = 200, **changes: float) -> RecordedSeries:
    return RecordedSeries("made up", make_times(launches, **changes), 2.0)  # type: ignore[arg-type]
