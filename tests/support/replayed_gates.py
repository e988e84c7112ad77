"""The verdicts of our own rule on recorded launches."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from tunegate.decide.decision import bounds, decide_cell
from tunegate.decide.guards import are_undisturbed
from tunegate.decide.sequential import PLANNED, StoppingRule, guarded_stop

ReplayOutcome = Literal["fail", "pass", "inconclusive", "invalid-env"]


class Replayed(msgspec.Struct, frozen=True):
    """The end of one gate, and the number of its launches."""

    outcome: ReplayOutcome
    launches: int


def replay(
    effects: Sequence[float], noises: Sequence[float], margin_percent: float
) -> Replayed | None:
    """One gate over these launch effects, ln(head / base); None where they end before it does."""
    rule = StoppingRule(margin_percent=margin_percent, analyses=PLANNED, cells=1)
    for count in range(PLANNED[0], len(effects) + 1):
        stop = guarded_stop(effects[:count], noises[:count], (), rule)
        if stop == "disturbed":
            return Replayed("invalid-env", count)
        if stop is not None:
            return Replayed(_outcome(effects[:count], noises[:count], rule), count)
    return None


def gates(
    effects: Sequence[float], noises: Sequence[float], slowdown: float, margin_percent: float
) -> tuple[Replayed, ...]:
    """Gates one after the other, none of which shares a launch with another."""
    shifted = [effect + math.log1p(slowdown) for effect in effects]
    found = []
    first = 0
    most = 2 * PLANNED[-1]
    while (
        one := replay(shifted[first : first + most], noises[first : first + most], margin_percent)
    ) is not None:
        found.append(one)
        first += one.launches
    return tuple(found)


def _outcome(
    effects: Sequence[float], noises: Sequence[float], rule: StoppingRule
) -> ReplayOutcome:
    kept = are_undisturbed(noises, rule.margin)
    counted = [effect for effect, keep in zip(effects, kept, strict=True) if keep]
    decision = decide_cell(
        bounds(counted, analyses=len(rule.analyses), cells=rule.cells), rule.margin
    )
    return "inconclusive" if decision == "undecided" else decision
