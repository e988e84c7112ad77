"""The election of what ships, by successive halving: few launches for all candidates, more for
those within reach of the best. Pure: whoever holds it launches.

Candidates are held against the incumbent, which only a gain above the noise displaces.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import msgspec

CLEAR = 0.10
"""The effect (ln of the ratio) of one launch that needs no second one."""
RUNTIME_NOISE = 0.02
"""A smaller effect does not displace what is there."""
LAUNCHES = 3
MAX_SIDE_SECONDS = 30.0
"""Whoever was not launched by then is not elected."""
ELECTION_SHARE = 0.25
"""What more launches than one of each may take of the gate's seconds, on both sides together."""


def side_seconds(gate_seconds: float) -> float:
    """The time on one side of a model after which nothing is launched again."""
    return min(MAX_SIDE_SECONDS, ELECTION_SHARE * gate_seconds / 2)


class Election(msgspec.Struct, frozen=True, kw_only=True):
    """`leader` is what the challengers are launched beside, and `effects` has ln(challenger /
    leader) of each launch of those still within reach, in the order of the candidates."""

    leader: str
    effects: Mapping[str, tuple[float, ...]]

    @property
    def challenger(self) -> str | None:
        """The one to launch next; None where the best is known."""
        fewest = min(self.effects, key=lambda name: len(self.effects[name]), default=None)
        return fewest if fewest and len(self.effects[fewest]) < LAUNCHES else None

    def after(self, challenger: str, effect: float) -> Election:
        """The election with one launch more. The end of a round drops who is out of reach."""
        effects = {**self.effects, challenger: (*self.effects[challenger], effect)}
        seen = msgspec.structs.replace(self, effects=effects)
        is_round = len({len(each) for each in effects.values()}) == 1
        return seen._halved() if is_round else seen

    @property
    def winner(self) -> str:
        """The leader, or whoever beats it, and each one before, by more than the noise; a
        challenger that was launched less often than was planned has to beat them clearly."""
        name, best = self.leader, 0.0
        for each, effects in self.effects.items():
            needed = RUNTIME_NOISE if len(effects) >= LAUNCHES else CLEAR
            if effects and statistics.median(effects) <= best - needed:
                name, best = each, statistics.median(effects)
        return name

    def _halved(self) -> Election:
        medians = {name: statistics.median(effects) for name, effects in self.effects.items()}
        ranked = sorted(medians, key=lambda name: medians[name])
        first, best = ranked[0], min(0.0, medians[ranked[0]])
        near = [name for name in ranked if medians[name] - best < CLEAR]
        kept = near[: math.ceil(len(ranked) / 2)]
        if best > -CLEAR:
            return _held(self.leader, {n: e for n, e in self.effects.items() if n in kept})
        return _held(first, {n: () for n in self.effects if n in kept and n != first})


def _held(leader: str, effects: Mapping[str, tuple[float, ...]]) -> Election:
    return Election(leader=leader, effects=effects)


def election(candidates: Sequence[str], incumbent: str) -> Election:
    """The election before its first launch."""
    return _held(incumbent, {name: () for name in candidates if name != incumbent})
