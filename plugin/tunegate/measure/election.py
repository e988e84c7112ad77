"""The election of what ships, by successive halving: a few launches for every candidate, more for
those within reach of the best. Pure; the caller launches.

A candidate replaces the incumbent only by a gain above the noise.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, CandidateTime, RefusedCandidate, RuntimeChoice
from tunegate.errors import MeasurementError
from tunegate.ports import Bench, Benchmarker, Clock

CLEAR = 0.10
"""An effect (ln of the ratio) this large needs no second launch."""
RUNTIME_NOISE = 0.02
"""A smaller effect does not replace the incumbent."""
LAUNCHES = 3
MAX_SIDE_SECONDS = 30.0
"""A candidate that cannot be launched within these seconds is not elected."""


def side_seconds(gate_seconds: float, share: float) -> float:
    """Returns the seconds on one side of a model after which no further launch starts. Launches
    beyond the first of each candidate may take `share` of the gate's seconds, both sides
    together."""
    return min(MAX_SIDE_SECONDS, share * gate_seconds / 2)


class Election(msgspec.Struct, frozen=True, kw_only=True):
    """`leader` is what challengers are launched beside. `effects` has ln(challenger / leader) of
    each launch, for the challengers within reach, in the order of the candidates. `inexact`
    candidates compute in numbers other than float32."""

    incumbent: str
    leader: str
    effects: Mapping[str, tuple[float, ...]]
    inexact: frozenset[str] = frozenset()

    @property
    def challenger(self) -> str | None:
        """Returns the challenger to launch next, None once the best is known."""
        fewest = min(self.effects, key=lambda name: len(self.effects[name]), default=None)
        return fewest if fewest and len(self.effects[fewest]) < LAUNCHES else None

    def after(self, challenger: str, effect: float) -> Election:
        """Returns the election with one more launch. The end of a round drops challengers out of
        reach."""
        effects = {**self.effects, challenger: (*self.effects[challenger], effect)}
        result = msgspec.structs.replace(self, effects=effects)
        is_round = len({len(each) for each in effects.values()}) == 1
        return result._halve() if is_round else result

    def without(self, challenger: str) -> Election:
        """Returns the election without a challenger that could not be measured."""
        rest = {name: each for name, each in self.effects.items() if name != challenger}
        remaining = msgspec.structs.replace(self, effects=rest)
        rounds = {len(each) for each in rest.values()}
        is_round = len(rounds) == 1 and len(self.effects[challenger]) < min(rounds)
        return remaining._halve() if is_round else remaining

    @property
    def winner(self) -> str:
        """Returns the leader, or the challenger that beats it and every earlier one by more than
        the noise. A challenger with fewer launches than planned must win clearly. Other numbers
        than float32 win only by more than the noise, unless the incumbent has them."""
        name, best = self.leader, 0.0
        for each, effects in self.effects.items():
            margin = RUNTIME_NOISE if len(effects) >= LAUNCHES else CLEAR
            if effects and statistics.median(effects) <= best - margin:
                name, best = each, statistics.median(effects)
        if name in self.inexact and name != self.incumbent:
            return self._exact_beside(best) or name
        return name

    def _exact_beside(self, best: float) -> str | None:
        """Returns the fastest float32 candidate within the noise of the best."""
        exact = {
            name: effect
            for name, effect in {self.leader: 0.0, **self._medians()}.items()
            if name not in self.inexact and effect < best + RUNTIME_NOISE
        }
        return min(exact, key=lambda name: exact[name], default=None)

    def _medians(self) -> dict[str, float]:
        return {name: statistics.median(each) for name, each in self.effects.items() if each}

    def _halve(self) -> Election:
        medians = self._medians()
        order = sorted(medians, key=lambda name: medians[name])
        first, best = order[0], min(0.0, medians[order[0]])
        near_best = [name for name in order if medians[name] - best < CLEAR]
        exact = [name for name in near_best if name not in self.inexact]
        names = {*near_best[: math.ceil(len(order) / 2)], *exact[:1]}
        if best > -CLEAR:
            first, effects = self.leader, {n: e for n, e in self.effects.items() if n in names}
        else:
            effects = {n: () for n in self.effects if n in names and n != first}
        return msgspec.structs.replace(self, leader=first, effects=effects)


def in_turn(runtimes: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the candidates in launch order: the first of each runtime, then the second of each.
    An election that is cut short has then seen every runtime, and float32 before other numbers."""
    rounds: dict[str, int] = {}
    counts: dict[str, int] = defaultdict(int)
    for name, runtime in runtimes.items():
        rounds[name] = counts[runtime]
        counts[runtime] += 1
    return tuple(sorted(runtimes, key=rounds.__getitem__))


def election(candidates: Sequence[str], incumbent: str, inexact: Collection[str] = ()) -> Election:
    """Returns the election before its first launch."""
    return Election(
        incumbent=incumbent,
        leader=incumbent,
        effects={name: () for name in candidates if name != incumbent},
        inexact=frozenset(inexact),
    )


# The launches of an election on one side of a model, until the best is clear or time is up.

_PAIRS = 4
_TOO_LATE = "not measured: the time of the election was over"


@dataclass(frozen=True, kw_only=True)
class Launching:
    """The context of launches. Builds are under `out`. No further launch starts after `seconds`."""

    benchmarker: Benchmarker
    clock: Clock
    out: Path
    seconds: float


class Race:
    """An election and its launches. When time is up it ends with what is known. A challenger that
    breaks is refused, except if it is `essential`, or if nothing ran yet: then the leader may be
    the broken one."""

    def __init__(
        self,
        builds: Mapping[str, Build],
        incumbent: Build,
        launching: Launching,
        essential: Collection[str],
    ) -> None:
        self._builds, self._launching, self._essential = builds, launching, essential
        inexact = [name for name, build in builds.items() if build.error_estimate]
        names = in_turn({name: build.runtime for name, build in builds.items()})
        self._election = election(names, incumbent.candidate, inexact)
        self._benches: dict[tuple[str, str], Bench] = {}
        self._milliseconds: dict[str, list[float]] = defaultdict(list)
        self._broken: dict[str, MeasurementError] = {}

    def winner(self, choice: RuntimeChoice) -> Build:
        """Returns the winner, with the measured times in its choice. Raises MeasurementError."""
        began = self._launching.clock.monotonic()
        while (challenger := self._election.challenger) is not None:
            if self._is_late(self._launching.clock.monotonic() - began):
                break
            self._election = self._after(challenger)
        if self._broken and not self._milliseconds:
            raise next(iter(self._broken.values()))
        missing = tuple(self._unmeasured_candidates())
        choice = msgspec.structs.replace(
            choice,
            times=tuple(self._times()),
            refused=(*choice.refused, *missing),
            is_complete=not missing,
            is_cut_short=bool(missing) and not self._broken,
        )
        return msgspec.structs.replace(self._builds[self._election.winner], choice=choice)

    def _is_late(self, seconds: float) -> bool:
        """Returns whether time is up. Every candidate is launched once unless that alone takes too
        long."""
        launched_names = {*self._milliseconds, *self._broken}
        is_each_launched = len(launched_names) == len(self._builds)
        most = self._launching.seconds if is_each_launched else MAX_SIDE_SECONDS
        return bool(launched_names) and seconds >= most

    def _after(self, challenger: str) -> Election:
        try:
            effect = self._launch_effect(challenger)
        except MeasurementError as error:
            if challenger in self._essential:
                raise
            self._broken[challenger] = error
            self._milliseconds.pop(challenger, None)
            return self._election.without(challenger)
        return self._election.after(challenger, effect)

    def _launch_effect(self, challenger: str) -> float:
        """Returns the effect of a challenger against the leader: ln(challenger / leader)."""
        leader = self._election.leader
        base, head = sorted((leader, challenger), key=list(self._builds).index)
        launch = self._bench(base, head).launch(_PAIRS)
        self._milliseconds[base].append(launch.base_ms)
        self._milliseconds[head].append(launch.head_ms)
        return launch.effect if challenger == head else -launch.effect

    def _bench(self, base: str, head: str) -> Bench:
        if (base, head) not in self._benches:
            at = [self._launching.out / self._builds[name].directory for name in (base, head)]
            self._benches[base, head] = self._launching.benchmarker.pair(*at)
        return self._benches[base, head]

    def _times(self) -> Iterator[CandidateTime]:
        for name, build in self._builds.items():
            if name in self._milliseconds:
                times = self._milliseconds[name]
                yield CandidateTime(
                    candidate=name,
                    title=build.title,
                    ms=statistics.median(times),
                    low_ms=min(times),
                    high_ms=max(times),
                    error=build.error_estimate[0] if build.error_estimate else None,
                )

    def _unmeasured_candidates(self) -> Iterator[RefusedCandidate]:
        for name, build in self._builds.items():
            if name not in self._milliseconds:
                error = self._broken.get(name)
                reason = _TOO_LATE if error is None else f"not measured: {error}"
                yield RefusedCandidate(candidate=name, title=build.title, reason=reason)
