"""Launches one cell again and again, until the question is decided or the machine cannot decide
it."""

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from tunegate.artifacts.measurements import DifferingLayers, Launch, LayersLaunch
from tunegate.config import GateConfig
from tunegate.decide import sequential, stalls
from tunegate.decide.assessment import (
    Assessment,
    Next,
    after_pass,
    assess,
    worst_mean,
    worst_median,
)
from tunegate.decide.decision import bounds
from tunegate.decide.guards import CONTROL_EVERY, is_control_due, noise_of, undisturbed_launches
from tunegate.decide.margins_beside_latency import layers_change
from tunegate.decide.slow_modes import lowest_cut_off
from tunegate.errors import MeasurementError
from tunegate.ports import Bench, Benchmarker, ProbeThresholds, Turns

_TRIES = 2
_LONGER = 1.5
"""The most seconds of launches in multiples of those planned: what runs beside the gate may make
each launch longer than the first one."""
_MIN_LAUNCHING_SECONDS, _TIMES_THE_SECONDS = 600.0, 4.0
"""The seconds after which fewer launches than the first analysis has must do: ten minutes, or so
many times gate.seconds."""
_WITH_CONTROL = 1 + 1 / CONTROL_EVERY
"""The cost of a launch, with its share of the A/A controls."""
_STALL_SHARE, _DOUBT_SHARE = 0.1, 0.25
"""The shares of gate.seconds for more inferences of a fast model: to see rare stalls, and to tell
whether those that were seen come with the head."""
_LIKELY_PROBES = 12
"""The probes of a usual pass."""
_MIN_PROBING_SECONDS = 60.0
"""The least seconds for probes, however small the budget: without probes nothing may pass."""


class LaunchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a cell: counted launches and their maximum, the seconds until an answer is
    likely, the change and its interval in percent. After a pass, `probes` counts fresh starts."""

    launches: int
    most: int
    seconds_left: float
    low: float
    center: float
    high: float
    probes: int = 0
    most_probes: int = 0


class PairedLaunches(msgspec.Struct, frozen=True, kw_only=True):
    """All launches in order, those that do not count included. `probes` are further starts of the
    head. `starts` are the start counts at which slow modes were looked for."""

    launches: tuple[Launch, ...]
    controls: tuple[float, ...]
    analyses: tuple[int, ...]
    stopped: sequential.Stop
    probes: tuple[Launch, ...] = ()
    starts: tuple[int, ...] = ()

    def assess(self, gate: GateConfig, cells: int = 1) -> Assessment | None:
        """Returns the assessment of the launches, None without an interval."""
        rule = sequential.stopping_rule(gate, self.analyses, cells)
        return assess(self.launches, self.probes, self.starts, rule)


def launch_until_decided(
    bench: Bench,
    control: Bench,
    gate: GateConfig,
    cells: int,
    say: Callable[[LaunchProgress], None],
    *,
    waiver: GateConfig | None = None,
) -> PairedLaunches:
    """Launches until the cell is decided. `control` measures the base against itself. After a fail
    the launches go on until `waiver`, its gate, is decided as well. Raises
    MeasurementError if a launch breaks twice."""
    series = _Series(bench, control, gate, cells, say, waiver=waiver)
    while (stop := series.stop()) is None:
        series.go_on()
    return series.finish(stop)


class _Series:
    """The launches of one cell, and what remains to be done."""

    def __init__(
        self,
        bench: Bench,
        control: Bench,
        gate: GateConfig,
        cells: int,
        say: Callable[[LaunchProgress], None],
        *,
        waiver: GateConfig | None,
    ) -> None:
        self._bench, self._control, self._say = bench, control, say
        self._gate = gate
        self._usual_pairs = gate.pairs
        self._seconds = 0.0
        self._launches = [self._launch(bench, gate.pairs)]
        # Only later launches are planned by the cost of the first one.
        seconds = self._launches[0].seconds * _WITH_CONTROL
        affordable = sequential.affordable_analyses(gate.seconds, seconds)
        analyses = (
            sequential.affordable_analyses(2 * gate.seconds, seconds) if gate.extend else affordable
        )
        self._rule = sequential.stopping_rule(gate, analyses, cells, affordable[-1])
        self._rule_of_waiver = (
            sequential.stopping_rule(waiver, analyses, cells, affordable[-1]) if waiver else None
        )
        if self._launches[0].head_ms >= stalls.WANTED_BELOW_MS:
            self._usual_pairs = sequential.affordable_pairs(
                gate.pairs,
                gate.seconds / _WITH_CONTROL,
                start_seconds=bench.start_seconds,
                pair_seconds=bench.pair_seconds,
            )
        self._pairs = stalls.wanted_pairs(
            self._usual_pairs,
            self._launches,
            sequential.PLANNED[0] - 1,
            inferences=stalls.WANTED_INFERENCES,
            pair_seconds=bench.pair_seconds,
            seconds=_STALL_SHARE * gate.seconds,
        )
        self._probing_seconds = max(_MIN_PROBING_SECONDS, 2 * gate.seconds)
        self._probes: list[Launch] = []
        self._controls: list[float] = []
        self._next = Next()
        self._has_passed = self._lacks_probes = False
        self._until = self._stall_pairs = 0
        self._stall_seconds = 0.0
        self._run_control()

    def stop(self) -> sequential.Stop | None:
        """Returns the reason to stop, or None. A fail is none yet where a waiver may cover it: its
        rule follows."""
        stop = self._stop()
        if stop in {None, "disturbed"} or self._rule_of_waiver is None:
            return stop
        assessment = self._assess()
        if assessment is None or assessment.decision != "fail":
            return stop
        self._rule, self._rule_of_waiver = self._rule_of_waiver, None
        return self._stop()

    def _stop(self) -> sequential.Stop | None:
        if self._lacks_probes:
            return "budget"
        effects = [launch.effect for launch in self._launches]
        noises = [noise_of(launch) for launch in self._launches]
        is_late = self._is_late() and not self._has_passed
        stop = sequential.guarded_stop(effects, noises, self._controls, self._rule, is_late=is_late)
        if stop is not None and stop != "decided":
            return stop
        assessment = self._assess() if stop is not None or self._has_passed else None
        self._has_passed = assessment is not None and assessment.median == "pass"
        if stop == "decided" and assessment is not None and assessment.median == "undecided":
            # Slower in seconds, not in clock cycles: more launches tell which it is.
            stop = "budget" if len(self._launches) >= self._rule.budget else None
        if assessment is None or not self._has_passed:
            self._next = Next(launch=True, starts=self._next.starts)
            return stop
        self._next = after_pass(assessment, self._next.starts, len(self._launches), self._rule)
        self._look_at_stalls(assessment)
        return None if self._next.probes or self._next.launch else "decided"

    def go_on(self) -> None:
        """Makes the launch, control or probes that `stop` found missing."""
        if self._next.probes:
            self._probe(self._next.probes)
            return
        if len(self._launches) == sequential.PLANNED[0]:
            self._usual_pairs = _replan_pairs(self._bench, self._launches)
        is_for_stalls = len(self._launches) < self._until
        if len(self._launches) >= sequential.PLANNED[0]:
            self._pairs = self._stall_pairs if is_for_stalls else self._usual_pairs
        self._launches.append(self._launch(self._bench, self._pairs))
        self._stall_seconds += is_for_stalls * self._launches[-1].seconds
        self._run_control()
        self._tell(self._probes_if_passed())

    def _look_at_stalls(self, assessment: Assessment) -> None:
        """Plans launches of a fast model up to the next analysis where its stalls may come with the
        head. Ends launches that no seconds are left for."""
        launches_made = len(self._launches)
        if launches_made >= self._until and assessment.doubts_stalls(
            self._rule.tail_margin_percent
        ):
            self._plan_for_stalls(launches_made)
        if launches_made < self._until and not self._is_late():
            self._next = msgspec.structs.replace(self._next, launch=True)
        elif self._next.launch and self._seconds_left() <= 0:
            self._next = msgspec.structs.replace(self._next, launch=False)

    def _plan_for_stalls(self, launches: int) -> None:
        """Plans the launches that the seconds left pay for: all of them where the verdict is open,
        a part of them and up to DECISIVE_INFERENCES where it would be a pass."""
        counting = len(undisturbed_launches(self._launches, self._rule.margin))
        more = next((size - counting for size in self._rule.analyses if size > counting), 0)
        inferences = stalls.total_stalls(self._launches)[0].inferences
        seconds_left = self._seconds_left()
        if not self._next.launch:
            share = _DOUBT_SHARE * (inferences < stalls.DECISIVE_INFERENCES)
            seconds_left = min(seconds_left, share * self._gate.seconds - self._stall_seconds)
        usual_seconds = self._bench.start_seconds + self._usual_pairs * self._bench.pair_seconds
        if not more or seconds_left < more * usual_seconds:
            return
        self._until = launches + more
        self._stall_pairs = stalls.wanted_pairs(
            self._usual_pairs,
            self._launches,
            more,
            inferences=min(stalls.DECISIVE_INFERENCES, stalls.GROWTH * inferences),
            pair_seconds=self._bench.pair_seconds,
            seconds=seconds_left,
        )

    def _launch(self, bench: Bench, pairs: int) -> Launch:
        """Returns a launch, tried once more in fresh processes if it breaks."""
        for attempt in range(_TRIES):
            try:
                launch = _numbers(bench.launch(pairs))
            except MeasurementError:
                self._seconds += bench.start_seconds + pairs * bench.pair_seconds
                if attempt == _TRIES - 1:
                    raise
            else:
                # Another gate's turn on a GPU, which this one waits for, is none of its seconds.
                self._seconds += launch.seconds
                return launch
        raise AssertionError

    def _is_late(self) -> bool:
        """Returns whether no launch may begin: the launches took longer than planned, or the first
        analysis is far."""
        launches = len(self._launches)
        if len(undisturbed_launches(self._launches, self._rule.margin)) < sequential.PLANNED[0]:
            first = math.inf if launches == 1 else _MIN_LAUNCHING_SECONDS
            most = max(first, _TIMES_THE_SECONDS * self._gate.seconds)
        else:
            is_extended = self._gate.extend and launches >= self._rule.budget
            most = _LONGER * (2 if is_extended else 1) * self._gate.seconds
        return self._seconds > most

    def _seconds_left(self) -> float:
        whole = (2 if self._gate.extend else 1) * self._gate.seconds
        return whole - sum(launch.seconds for launch in self._launches)

    def finish(self, stop: sequential.Stop) -> PairedLaunches:
        return PairedLaunches(
            launches=tuple(self._launches),
            controls=tuple(self._controls),
            analyses=self._rule.analyses,
            stopped=stop,
            probes=tuple(self._probes),
            starts=self._next.starts,
        )

    def _tell(self, after_launches: float, most_probes: int = 0) -> None:
        """Reports progress. `after_launches` are the seconds that follow the launches."""
        far = _so_far(self._launches, self._rule)
        probe_seconds = [probe.seconds for probe in self._probes]
        if most_probes:
            seconds_left = max(0, most_probes - len(probe_seconds)) * statistics.fmean(
                probe_seconds
            )
        else:
            # Nobody knows yet that this was the last launch, and those for stalls are longer.
            more = max(1, self._until - len(self._launches)) * self._launches[-1].seconds
            seconds_left = max(far.seconds_left, more) + after_launches
        self._say(
            msgspec.structs.replace(
                far, seconds_left=seconds_left, probes=len(probe_seconds), most_probes=most_probes
            )
        )

    def _probes_if_passed(self) -> float:
        """Returns the seconds of the probes that follow if the cell passes as it looks now."""
        usual = statistics.median(launch.effect for launch in self._launches)
        is_passing = usual < self._rule.margin and self._rule.rare > 0
        return _LIKELY_PROBES * self._bench.start_seconds if is_passing else 0.0

    def _assess(self) -> Assessment | None:
        return assess(self._launches, self._probes, self._next.starts, self._rule)

    def _run_control(self) -> None:
        """Runs the base against itself. Stalls are not looked for here, so the usual pairs
        suffice."""
        if is_control_due(len(self._launches)):
            pairs = min(self._pairs, self._usual_pairs)
            self._controls.append(self._launch(self._control, pairs).effect)

    def _probe(self, count: int) -> None:
        """Starts the head `count` times more, or fewer if that takes too long: then nothing passes,
        because a pass needs the probes."""
        usual = statistics.median(launch.effect for launch in self._launches)
        thresholds = ProbeThresholds(
            by_median=lowest_cut_off(usual, worst_median(self._rule)),
            by_mean=lowest_cut_off(usual, worst_mean(self._rule)),
        )
        with closing(self._bench.probes(count, thresholds)) as probes:
            for probe in probes:
                self._probes.append(_numbers(probe))
                self._tell(0.0, count)
                if sum(each.seconds for each in self._probes) > self._probing_seconds:
                    self._lacks_probes = len(self._probes) < count
                    return


# The layers that differ, timed inside both models in one process a launch.

_TURN_MS, _FEWEST, _MOST = 30.0, 2, 100
"""The length of a turn of one side, and the inferences in it."""
_ROUNDS, _LAUNCH_MS = 6, 10_000.0
"""The most rounds of a launch, and the longest that they may take where one of them takes less."""


def launch_layers(
    benchmarker: Benchmarker,
    sides: tuple[Path, Path],
    gate: GateConfig,
    cells: int,
    inference_ms: float,
) -> DifferingLayers:
    """Returns the launches of the layers that differ: until their margin is decided, or as many as
    gate.seconds pay for. Where launches get longer than the first one, none begins after half as
    many seconds more, once the first analysis is reached. Raises MeasurementError."""
    turns = turns_of(inference_ms)

    def launch_once(number: int) -> LayersLaunch:
        return benchmarker.layers(*sides, number=number, turns=turns)

    launches = [launch_once(0)]
    analyses = sequential.affordable_analyses(gate.seconds, launches[0].seconds)
    while not _is_settled(launches, analyses, gate, cells):
        launches.append(launch_once(len(launches)))
    return DifferingLayers(launches=tuple(launches), analyses=analyses)


def turns_of(inference_ms: float) -> Turns:
    """Returns the turns of a launch: fewer rounds of a slow model."""
    inferences = round(min(_MOST, max(_FEWEST, _TURN_MS / inference_ms)))
    round_ms = 4 * inferences * inference_ms
    return Turns(inferences, round(min(_ROUNDS, max(1, _LAUNCH_MS / round_ms))))


def _is_settled(
    launches: Sequence[LayersLaunch], analyses: tuple[int, ...], gate: GateConfig, cells: int
) -> bool:
    """Returns whether no more launches are needed: at an analysis that decides or is the last one,
    or at once if no layer differs."""
    if not launches[0].base_ms and not launches[0].head_ms:
        return True
    seconds = sum(launch.seconds for launch in launches)
    is_over = len(launches) >= analyses[0] and seconds > _LONGER * gate.seconds
    if is_over or len(launches) not in analyses:
        return is_over
    layers = DifferingLayers(launches=tuple(launches), analyses=analyses)
    change = layers_change(layers, gate.layers_margin_percent, cells=cells)
    is_decided = change is not None and change.decision != "undecided"
    return is_decided or len(launches) >= analyses[-1]


def _numbers(launch: Launch) -> Launch:
    """Returns the launch if its effect is a finite number. Raises MeasurementError otherwise,
    because one NaN would poison every later estimate."""
    if not math.isfinite(launch.effect) or not math.isfinite(launch.noise):
        message = (
            f"a launch gave no number (base {launch.base_ms:g} ms, head {launch.head_ms:g} ms)"
        )
        raise MeasurementError(message)
    return launch


def _replan_pairs(bench: Bench, launches: list[Launch]) -> int:
    return sequential.replanned_pairs(
        bench.within_spread,
        statistics.stdev(launch.effect for launch in launches),
        start_seconds=bench.start_seconds,
        pair_seconds=bench.pair_seconds,
    )


def _so_far(launches: list[Launch], rule: sequential.StoppingRule) -> LaunchProgress:
    effects = [launch.effect for launch in undisturbed_launches(launches, rule.margin)]
    if len(effects) < 2:  # noqa: PLR2004 -- a spread needs two
        center = 100 * math.expm1(statistics.fmean(effects or [0.0]))
        low, high = float("-inf"), float("inf")
    else:
        interval = bounds(effects, analyses=len(rule.analyses), cells=rule.cells)
        low, center, high = (
            100 * math.expm1(each) for each in (interval.low, interval.center, interval.high)
        )
    launches_left = max(0, sequential.likely_end(effects, rule) - len(effects))
    return LaunchProgress(
        launches=len(effects),
        most=rule.most_launches(len(effects)),
        seconds_left=launches_left
        * statistics.fmean(launch.seconds for launch in launches)
        * _WITH_CONTROL,
        low=low,
        center=center,
        high=high,
    )
