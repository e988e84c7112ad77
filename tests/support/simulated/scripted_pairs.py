"""Launches of two builds whose effects are written down."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from tests.support.measured_cells import make_launches
from tunegate.artifacts.histogram import Histogram
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.measurements import Launch, LayersLaunch
from tunegate.errors import MeasurementError
from tunegate.ports import ProbeThresholds, Turns


class ScriptedPairs:
    """Launches with these effects, whichever side asks; None is one that breaks. A build
    alone takes `alone_ms`."""

    within_spread = start_seconds = pair_seconds = 0.0

    def __init__(self, effects: Sequence[float | None], alone_ms: float | None = 2.0) -> None:
        self.effects, self.alone_ms = list(effects), alone_ms
        self.asked = 0

    def pair(self, base: Path, head: Path, **_: object) -> ScriptedPairs:
        return self

    def launch(self, pairs: int) -> Launch:
        self.asked += 1
        effect = self.effects.pop(0)
        if effect is None:
            message = "no answer in 120 s"
            raise MeasurementError(message)
        return make_launches([effect])[0]

    def probes(self, count: int, far: ProbeThresholds) -> Generator[Launch]:
        raise AssertionError

    def single_ms(self, artifact: Path) -> float:
        if self.alone_ms is None:
            message = "no answer in 120 s"
            raise MeasurementError(message)
        return self.alone_ms

    def layers(self, base: Path, head: Path, *, number: int, turns: Turns) -> LayersLaunch:
        raise AssertionError

    def reference_ms(self, model: ShapedModel, *, threads: int) -> float:
        raise AssertionError

    def times(self, artifact: Path, inferences: int) -> Histogram:
        raise AssertionError

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        raise AssertionError
