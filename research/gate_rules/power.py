"""The false alarms and the power of every rule on the same recorded launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np
from tests.support.replayed_gates import ReplayOutcome, gates

from research.gate_rules import peer_rules
from research.gate_rules.peer_rules import PeerRule
from research.gate_rules.recorded import RecordedSeries
from tunegate.decide.distributions import t_quantile

SLOWDOWNS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.10)
COVERED_LAUNCHES = (4, 6, 9, 13)
_HISTORY = 64
_NOMINAL = 0.95


class Peer(msgspec.Struct, frozen=True):
    """A tool's rule and the samples it sees: launches of the base before those of the head, both in
    turn, or a history of runs of the base."""

    name: str
    rule: Callable[..., bool]
    sees: Literal["one after the other", "in turn", "history"]
    launches: int


PEERS = (
    *(
        Peer(
            f"github-action-benchmark, {percent}%",
            peer_rules.github_action_benchmark(percent),
            "one after the other",
            1,
        )
        for percent in (200, 110, 105)
    ),
    Peer("benchstat", peer_rules.benchstat, "one after the other", 5),
    Peer("google compare.py", peer_rules.google_compare, "one after the other", 5),
    Peer("Criterion", peer_rules.criterion, "one after the other", 5),
    Peer("pyperf", peer_rules.pyperf, "one after the other", 5),
    Peer("asv continuous", peer_rules.asv_continuous, "in turn", 2),
    Peer("nvbench, robust", peer_rules.nvbench_robust, "one after the other", 1),
    Peer("tango", peer_rules.tango, "in turn", 1),
    Peer("Bencher, t test 0.99", peer_rules.bencher_t_test, "history", 1),
    Peer("Conbench, z of 5", peer_rules.conbench, "history", 1),
)  # fmt: skip


class Alarms(msgspec.Struct, frozen=True):
    """The share of jobs that report a slowdown, for each of SLOWDOWNS."""

    name: str
    shares: tuple[float, ...]


class Verdicts(msgspec.Struct, frozen=True, kw_only=True):
    """Our gates at one margin and one slowdown: how each ended, and its seconds."""

    margin_percent: float
    slowdown: float
    outcomes: tuple[ReplayOutcome, ...]
    seconds: tuple[float, ...]

    def share(self, outcome: ReplayOutcome) -> float:
        return self.outcomes.count(outcome) / max(1, len(self.outcomes))

    @property
    def median_seconds(self) -> float:
        return float(np.median(self.seconds or [math.nan]))

    @property
    def p95_seconds(self) -> float:
        return float(np.percentile(self.seconds or [math.nan], 95))


class Coverage(msgspec.Struct, frozen=True):
    """The shares of one-sided 95% bounds of so many launches that are on their side of the
    truth."""

    launches: int
    low: float
    high: float


def alarms(series: RecordedSeries, peer: Peer) -> Alarms:
    """The alarms over all windows of the series, each moved by one launch."""
    shares = [float(np.mean(list(_jobs(series, peer, slowdown)))) for slowdown in SLOWDOWNS]
    return Alarms(peer.name, tuple(shares))


def _jobs(series: RecordedSeries, peer: Peer, slowdown: float) -> Iterator[bool]:
    rule: PeerRule = peer.rule
    count = peer.launches
    if peer.sees == "in turn":
        for first in range(len(series) - count + 1):
            yield rule(series.base(first, count), series.head(first, count, slowdown))
    elif peer.sees == "history":
        for first in range(_HISTORY, len(series)):
            base = series.base(first - _HISTORY, _HISTORY)
            yield rule(base, series.head(first, count, slowdown))
    else:
        for first in range(len(series) - 2 * count + 1):
            head = series.head(first + count, count, slowdown)
            yield rule(series.base(first, count), head)


def verdicts(series: RecordedSeries, slowdown: float, margin_percent: float) -> Verdicts:
    """Our gate on the series, again and again, no launch used twice."""
    noises = [float(noise) for noise in series.noises]
    found = gates(_center(series, slowdown), noises, slowdown, margin_percent)
    return Verdicts(
        margin_percent=margin_percent,
        slowdown=slowdown,
        outcomes=tuple(each.outcome for each in found),
        seconds=tuple(each.launches * series.seconds_per_launch for each in found),
    )


def _center(series: RecordedSeries, slowdown: float) -> Sequence[float]:
    """A/A gates take the launches as they are; power is asked about a true effect, so what little
    the arms differ by over the whole series is taken out."""
    offset = float(np.mean(series.effects)) if slowdown else 0.0
    return [float(effect) - offset for effect in series.effects]


def interval_coverage(series: RecordedSeries, launches: int) -> Coverage:
    """The coverage over all windows; the truth is the mean of the whole series."""
    truth = float(np.mean(series.effects))
    windows = np.lib.stride_tricks.sliding_window_view(series.effects, launches)
    error = windows.std(axis=1, ddof=1) / math.sqrt(launches)
    width = t_quantile(launches - 1, _NOMINAL) * error
    centers = windows.mean(axis=1)
    return Coverage(
        launches,
        low=float(np.mean(centers - width <= truth)),
        high=float(np.mean(centers + width >= truth)),
    )
