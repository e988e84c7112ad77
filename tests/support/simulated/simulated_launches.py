"""Benches whose launches are recorded or made up, with a truth put in that is known."""

import math
from collections.abc import Callable, Generator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from tunegate.artifacts.histogram import STEP, Histogram, histogram
from tunegate.artifacts.measurements import Launch
from tunegate.config import GateConfig
from tunegate.decide.decision import launch_effect, launch_noise
from tunegate.decide.stalls import stalls_of
from tunegate.measure.paired_launches import PairedLaunches, launch_until_decided
from tunegate.ports import ProbeThresholds

Times = npt.NDArray[np.float64]
"""[launch, block pair, arm, inference] in milliseconds."""
Rng = np.random.Generator
Factors = Callable[[int, Rng], tuple[float, float]]
"""A function of a start's number that gives the factors of the base and of the head."""
_LOOKS_OF_PROBE = (3, 6, 12)
_PAIR_SECONDS = 0.11


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A truth about launches: `factors` multiply all times of a process, `inside` the times of its
    inferences. `mean_percent` is what users pay; it is `promised` that it does not pass, or
    `unchanged`."""

    name: str
    mean_percent: float
    factors: Factors = lambda number, rng: (1.0, 1.0)
    inside: Callable[[Times], Times] | None = None
    is_promised: bool = False
    is_unchanged: bool = False


class Noise:
    """Launches of one thing against itself. Its `seconds` are those of a launch,
    `start_seconds` of one process."""

    def __init__(
        self, name: str, times_ms: Times, seconds: float, start_seconds: float = 0.25
    ) -> None:
        self.name, self.times_ms = name, times_ms
        self.seconds, self.start_seconds = seconds, start_seconds
        self._known: dict[Callable[[Times], Times] | None, list[list[Launch]]] = {}

    def with_inside(self, change: Callable[[Times], Times] | None) -> list[list[Launch]]:
        """The series of what a probe sees after 3, 6 and 12 pairs of each recorded
        launch, and at last the launch."""
        if change not in self._known:
            self._known = {None: self._known[None]} if None in self._known else {}
            times = self.times_ms.copy()
            if change is not None:
                times[:, :, 1] = change(times[:, :, 1])
            ends = (*_LOOKS_OF_PROBE, self.times_ms.shape[1])
            self._known[change] = [[launch_of(one[:end]) for end in ends] for one in times]
        return self._known[change]


class SimulatedBench:
    """Goes through recorded launches from a random one on."""

    within_spread, start_seconds, pair_seconds = 0.01, 0.0, 0.0

    def __init__(
        self, noise: Noise, recorded: Sequence[Sequence[Launch]], scenario: Scenario, rng: Rng
    ) -> None:
        self._noise, self._recorded, self._scenario, self._rng = (noise, recorded, scenario, rng)
        self._at = int(rng.integers(len(recorded)))
        self.starts = 0

    def launch(self, pairs: int) -> Launch:
        last = self._next()[-1]
        factors = self._scenario.factors(self.starts, self._rng)
        self.starts += 1
        return scaled(last, *factors, self._noise.seconds)

    def probes(self, count: int, far: ProbeThresholds) -> Generator[Launch]:
        for number in range(count):
            analyses = self._next()[:-1]
            base, head = self._scenario.factors(self.starts, self._rng)
            self.starts += 1
            start = self._noise.start_seconds * (1.25 if number % 4 == 0 else 1.0)
            seen = [scaled(x, base, head, start + x.pairs * _PAIR_SECONDS) for x in analyses]
            yield next((each for each in seen if not _is_far(each, far)), seen[-1])

    def _next(self) -> Sequence[Launch]:
        self._at = (self._at + 1) % len(self._recorded)
        return self._recorded[self._at]


class Gate(msgspec.Struct, frozen=True):
    outcome: str
    seconds: float
    launches: int
    probes: int


def gates(
    noise: Noise,
    scenario: Scenario,
    config: GateConfig,
    count: int,
    seed: int,
    kind: type[SimulatedBench] = SimulatedBench,
    waived: GateConfig | None = None,
) -> list[Gate]:
    """Whole gates, each from a random launch on. `waived` is the gate of a waiver."""
    rng = np.random.default_rng(seed)
    quiet = noise.with_inside(None)
    analyses = noise.with_inside(scenario.inside)
    same = Scenario(name="control", mean_percent=0.0)
    found = []
    for _ in range(count):
        bench = kind(noise, analyses, scenario, rng)
        control = SimulatedBench(noise, quiet, same, rng)
        done = launch_until_decided(bench, control, config, 1, lambda far: None, waiver=waived)
        found.append(_gate(done, config, waived))
    return found


def _gate(done: PairedLaunches, config: GateConfig, waived: GateConfig | None) -> Gate:
    outcome = "invalid-env"
    if done.stopped != "disturbed":
        outcome = _decision(done, config)
        if waived and outcome != "pass" and _decision(done, waived) == "pass":
            outcome = "waived"
    seconds = sum(each.seconds for each in (*done.launches, *done.probes))
    return Gate(outcome, seconds, len(done.launches), len(done.probes))


def _decision(done: PairedLaunches, config: GateConfig) -> str:
    said = done.assess(config)
    return said.decision if said is not None else "undecided"


def _is_far(probe: Launch, far: ProbeThresholds) -> bool:
    return probe.effect >= far.by_median or (probe.mean_effect or 0.0) >= far.by_mean


def launch_of(times: Times) -> Launch:
    """A launch from times by [pair, arm, inference]."""
    medians = [np.median(times[:, arm], axis=1).tolist() for arm in (0, 1)]
    means = [times[:, arm].mean(axis=1).tolist() for arm in (0, 1)]
    return Launch(
        effect=launch_effect(*medians),
        base_ms=float(np.median(times[:, 0])),
        head_ms=float(np.median(times[:, 1])),
        pairs=len(times),
        seconds=0.0,
        noise=launch_noise(*medians),
        mean_effect=launch_effect(*means),
        base_times=histogram(times[:, 0].ravel()),
        head_times=histogram(times[:, 1].ravel()),
        stalls=stalls_of(times[:, 0].tolist(), times[:, 1].tolist()),
        first_ms=(medians[0][0], medians[1][0]),
    )


def scaled(launch: Launch, base: float, head: float, seconds: float) -> Launch:
    effect = math.log(head / base)
    first = launch.first_ms and (launch.first_ms[0] * base, launch.first_ms[1] * head)
    return msgspec.structs.replace(
        launch,
        effect=launch.effect + effect,
        base_ms=launch.base_ms * base,
        head_ms=launch.head_ms * head,
        mean_effect=(launch.mean_effect or 0.0) + effect,
        base_times=_moved(launch.base_times, base),
        head_times=_moved(launch.head_times, head),
        first_ms=first,
        seconds=seconds,
    )


def _moved(found: Histogram | None, factor: float) -> Histogram | None:
    if found is None or factor == 1.0:
        return found
    return msgspec.structs.replace(found, first=found.first + round(math.log(factor) / STEP))
