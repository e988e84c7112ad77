"""The verdicts of our own rule on recorded launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from tunegate.gate.decision import bounds, decide
from tunegate.gate.looks import PLANNED
from tunegate.gate.sequential import Rule, stop_after

Outcome = Literal["fail", "pass", "inconclusive"]


class Replayed(msgspec.Struct, frozen=True):
    """How one gate ended, and after how many launches."""

    outcome: Outcome
    launches: int


def replay(effects: Sequence[float], margin_percent: float) -> Replayed:
    """One gate over these launch effects, ln(head / base); they must last for the longest look."""
    rule = Rule(margin_percent=margin_percent, looks=PLANNED, cells=1)
    for count in PLANNED:
        if stop_after(effects[:count], rule) is not None:
            return Replayed(_outcome(effects[:count], rule), count)
    raise AssertionError


def gates(effects: Sequence[float], slowdown: float, margin_percent: float) -> tuple[Replayed, ...]:
    """Gates one after the other, none of which shares a launch with another."""
    shifted = [effect + math.log1p(slowdown) for effect in effects]
    found = []
    first = 0
    while first + PLANNED[-1] <= len(shifted):
        found.append(replay(shifted[first : first + PLANNED[-1]], margin_percent))
        first += found[-1].launches
    return tuple(found)


def _outcome(effects: Sequence[float], rule: Rule) -> Outcome:
    decision = decide(bounds(effects, looks=len(rule.looks), cells=rule.cells), rule.margin)
    return "inconclusive" if decision == "undecided" else decision
