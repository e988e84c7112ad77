"""Ports of measuring. The real ones live in `edges/bench/`, fakes in tests."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from tunegate.artifacts.measurements import Histogram, Launch
from tunegate.artifacts.shaped_model import ShapedModel


class ProbeThresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Effects, ln(head / base) by medians and by means of blocks, from which a probe is not
    enough: the same process is measured for longer."""

    by_median: float
    by_mean: float


class Bench(Protocol):
    """A pair of artifacts being measured: each call is one launch of two fresh processes.

    After a launch the properties say what it cost: seconds to start, seconds of each block pair,
    and the spread of ln(head / base) inside it. `launch` raises MeasurementError.
    """

    within_spread: float
    start_seconds: float
    pair_seconds: float

    def launch(self, pairs: int) -> Launch: ...
    def probes(self, count: int, thresholds: ProbeThresholds) -> Generator[Launch]:
        """Probes of fresh processes of the head, one after the other, beside a base that is
        running. Raises MeasurementError."""
        ...


class Benchmarker(Protocol):
    """Measures artifacts (directories with an `artifact.json`) on this machine. All of it raises
    MeasurementError."""

    def pair(self, base: Path, head: Path, *, slowdown_percent: float = 0.0) -> Bench:
        """The head waits for that much of each of its inferences: to try out a gate."""
        ...

    def single_ms(self, artifact: Path) -> float: ...
    def times(self, artifact: Path, inferences: int) -> Histogram:
        """The times of so many inferences in one fresh process."""
        ...

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        """Returns the time of each operator in one inference of the whole model, in ms, all its
        calls together."""
        ...

    def reference_ms(self, model: ShapedModel, *, threads: int) -> float: ...


class Scorer(Protocol):
    """Scores a build by the user's metric: larger is better. Raises MeasurementError."""

    def score(self, artifact: Path) -> float: ...
