"""The launches of an election on one side of a model, until the best is clear or time is up."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tunegate.artifacts.builds import Build, CandidateTime, RefusedCandidate, RuntimeChoice
from tunegate.bench_ports import Bench, Benchmarker
from tunegate.errors import MeasurementError
from tunegate.measuring.election import MAX_SIDE_SECONDS, Election, election, in_turn
from tunegate.ports import Clock

_PAIRS = 4
_TOO_LATE = "not measured: the time of the election was over"


@dataclass(frozen=True, kw_only=True)
class Launching:
    """The context of launches. The builds are under `out`; after `seconds` nothing is launched
    again."""

    benchmarker: Benchmarker
    clock: Clock
    out: Path
    seconds: float


class Race:
    """An election with its launches. One that lasts too long ends with what it knows. A challenger
    that breaks is refused, unless it is `needed`, or nothing was launched at all: then the leader
    may be what breaks."""

    def __init__(
        self,
        builds: Mapping[str, Build],
        incumbent: Build,
        launching: Launching,
        needed: Collection[str],
    ) -> None:
        self._builds, self._launching, self._needed = builds, launching, needed
        inexact = [name for name, build in builds.items() if build.error_estimate]
        launched = in_turn({name: build.runtime for name, build in builds.items()})
        self._election = election(launched, incumbent.candidate, inexact)
        self._benches: dict[tuple[str, str], Bench] = {}
        self._milliseconds: dict[str, list[float]] = defaultdict(list)
        self._broken: dict[str, MeasurementError] = {}

    def won(self, choice: RuntimeChoice) -> Build:
        """The winner; its choice is this one with what was measured. Raises MeasurementError."""
        began = self._launching.clock.monotonic()
        while (challenger := self._election.challenger) is not None:
            if self._is_late(self._launching.clock.monotonic() - began):
                break
            self._election = self._after(challenger)
        if self._broken and not self._milliseconds:
            raise next(iter(self._broken.values()))
        unmeasured = tuple(self._unmeasured())
        choice = msgspec.structs.replace(
            choice,
            times=tuple(self._times()),
            refused=(*choice.refused, *unmeasured),
            is_complete=not unmeasured,
            is_cut_short=bool(unmeasured) and not self._broken,
        )
        return msgspec.structs.replace(self._builds[self._election.winner], choice=choice)

    def _is_late(self, seconds: float) -> bool:
        """Every candidate is launched once, unless that takes too long."""
        tried = {*self._milliseconds, *self._broken}
        is_each_launched = len(tried) == len(self._builds)
        most = self._launching.seconds if is_each_launched else MAX_SIDE_SECONDS
        return bool(tried) and seconds >= most

    def _after(self, challenger: str) -> Election:
        try:
            effect = self._launched(challenger)
        except MeasurementError as error:
            if challenger in self._needed:
                raise
            self._broken[challenger] = error
            self._milliseconds.pop(challenger, None)
            return self._election.without(challenger)
        return self._election.after(challenger, effect)

    def _launched(self, challenger: str) -> float:
        """The effect of a challenger against the one that leads: ln(challenger / leader)."""
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

    def _unmeasured(self) -> Iterator[RefusedCandidate]:
        for name, build in self._builds.items():
            if name not in self._milliseconds:
                error = self._broken.get(name)
                reason = _TOO_LATE if error is None else f"not measured: {error}"
                yield RefusedCandidate(candidate=name, title=build.title, reason=reason)
