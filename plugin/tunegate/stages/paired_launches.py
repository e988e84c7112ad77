"""Launch after launch of one cell, until the question is answered or the machine cannot answer it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import msgspec

from tunegate.artifacts.measurements import Launch
from tunegate.config import GateConfig
from tunegate.errors import MeasurementError
from tunegate.gate.clocks import MOST_DROPPED
from tunegate.gate.decision import bounds
from tunegate.gate.guards import CANARY_EVERY, undisturbed, wants_canary
from tunegate.gate.looks import PLANNED, affordable_looks
from tunegate.gate.sequential import Rule, Stop, guarded_stop, likely_end, replanned_pairs
from tunegate.ports import Bench

_TRIES = 2
_WITH_CANARY = 1 + 1 / CANARY_EVERY
"""What a launch costs together with its share of the launches of the base against itself."""


class Progressing(msgspec.Struct, frozen=True, kw_only=True):
    """How far a cell is: launches that count, of at most so many; the seconds until an answer is likely;
    the interval in percent."""

    launches: int
    most: int
    seconds_left: float
    low: float
    center: float
    high: float


class PairedLaunches(msgspec.Struct, frozen=True, kw_only=True):
    """All launches in order, also those that do not count."""

    launches: tuple[Launch, ...]
    canaries: tuple[float, ...]
    looks: tuple[int, ...]
    stopped: Stop


def launch_until_decided(
    bench: Bench,
    canary: Bench,
    gate: GateConfig,
    cells: int,
    say: Callable[[Progressing], None],
) -> PairedLaunches:
    """`canary` measures the base against itself. Raises MeasurementError where a launch breaks
    twice."""
    launches = [_launch(bench, gate.pairs)]
    # Only the launches to come are planned by what the first one cost.
    seconds = launches[0].seconds * _WITH_CANARY
    paid = affordable_looks(gate.seconds, seconds)
    looks = affordable_looks(2 * gate.seconds, seconds) if gate.extend else paid
    rule = Rule(margin_percent=gate.margin_percent, looks=looks, cells=cells, paid=paid[-1])
    canaries: list[float] = []
    pairs = gate.pairs
    while True:
        if wants_canary(len(launches)):
            canaries.append(_launch(canary, pairs).effect)
        effects, noises = [x.effect for x in launches], [_noise(x) for x in launches]
        stop = guarded_stop(effects, noises, canaries, rule)
        if stop is not None:
            return PairedLaunches(
                launches=tuple(launches), canaries=tuple(canaries), looks=looks, stopped=stop
            )
        if len(launches) == PLANNED[0]:
            pairs = _replanned(bench, launches)
        launches.append(_launch(bench, pairs))
        say(_so_far(launches, rule))


def counted(launches: list[Launch] | tuple[Launch, ...], margin: float) -> list[Launch]:
    """Those that nothing disturbed. `margin` is ln(1 + the allowed slowdown)."""
    kept = undisturbed([_noise(launch) for launch in launches], margin)
    return [launch for launch, keep in zip(launches, kept, strict=True) if keep]


def _noise(launch: Launch) -> float:
    """Infinite where the clocks of the device left too little of it."""
    dropped = launch.clocks.dropped if launch.clocks else 0
    return math.inf if dropped > MOST_DROPPED * launch.pairs else launch.noise


def _launch(bench: Bench, pairs: int) -> Launch:
    """A launch that breaks is tried once more: fresh processes, nothing kept of the broken one."""
    for attempt in range(_TRIES):
        try:
            return _numbers(bench.launch(pairs))
        except MeasurementError:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError


def _numbers(launch: Launch) -> Launch:
    """Raises MeasurementError for a launch that gave none: it would poison what is made of it."""
    if not math.isfinite(launch.effect) or not math.isfinite(launch.noise):
        message = (
            f"a launch gave no number (base {launch.base_ms:g} ms, head {launch.head_ms:g} ms)"
        )
        raise MeasurementError(message)
    return launch


def _replanned(bench: Bench, launches: list[Launch]) -> int:
    return replanned_pairs(
        bench.within_spread,
        statistics.stdev(launch.effect for launch in launches),
        start_seconds=bench.start_seconds,
        pair_seconds=bench.pair_seconds,
    )


def _so_far(launches: list[Launch], rule: Rule) -> Progressing:
    effects = [launch.effect for launch in counted(launches, rule.margin)]
    if len(effects) < 2:  # noqa: PLR2004 -- a spread needs two
        center = 100 * statistics.fmean(effects or [0.0])
        low, high = float("-inf"), float("inf")
    else:
        found = bounds(effects, looks=len(rule.looks), cells=rule.cells)
        low, center, high = (100 * each for each in (found.low, found.center, found.high))
    left = max(0, likely_end(effects, rule) - len(effects))
    return Progressing(
        launches=len(effects),
        most=rule.most(len(effects)),
        seconds_left=left * statistics.fmean(launch.seconds for launch in launches) * _WITH_CANARY,
        low=low,
        center=center,
        high=high,
    )
