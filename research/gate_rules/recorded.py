"""Recorded launches: every inference of pairs of processes that ran the very same thing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tunegate.decide.decision import launch_effect, launch_noise

Times = npt.NDArray[np.float64]
"""[launch, block pair, arm, inference] in milliseconds; arm 0 is called the base."""


class RecordedSeries:
    """A/A launches of one model on one machine, one after the other. A slowdown is put in by
    multiplying the times of the head."""

    def __init__(self, name: str, times_ms: Times, seconds_per_launch: float) -> None:
        self.name = name
        self.times_ms = times_ms
        self.seconds_per_launch = seconds_per_launch
        medians = np.median(times_ms, axis=3)
        self.effects = np.array([launch_effect(m[:, 0], m[:, 1]) for m in medians])
        self.noises = np.array([launch_noise(m[:, 0], m[:, 1]) for m in medians])

    def __len__(self) -> int:
        return len(self.effects)

    def base(self, first: int, launches: int) -> Times:
        """[launch, pair, inference]."""
        return self.times_ms[first : first + launches, :, 0]

    def head(self, first: int, launches: int, slowdown: float) -> Times:
        """[launch, pair, inference], slower by that fraction."""
        return self.times_ms[first : first + launches, :, 1] * (1 + slowdown)
