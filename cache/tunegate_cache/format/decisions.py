"""Checks whether decisions may be replayed under a template, before the compiler sees them."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from tunegate_cache.format.records import Decision

SamplingKind = Literal["perfect-tile", "partitioned-tile", "categorical", "compute-location"]
_MAX_DECISIONS = 256
_MAX_FACTOR = 2**31 - 1
_FIRST_LOCATION, _LAST_LOCATION = -2, 63


class SamplingInstruction(msgspec.Struct, frozen=True, kw_only=True):
    """One sampling instruction of a template: its index, and the range of its decisions.

    `n` is the number of tile factors, `max_innermost` bounds the last (0: no bound), `extent` is
    the loop's length if known, `candidates` the number of choices of a categorical.
    """

    index: int
    kind: SamplingKind
    n: int = 1
    max_innermost: int = 0
    extent: int | None = None
    candidates: int = 0


def check_decisions(
    decisions: Sequence[Decision], template: Sequence[SamplingInstruction]
) -> str | None:
    """Returns why these decisions do not fit the template, or None. Each sampling instruction needs
    exactly one decision: a missing one would be sampled at random."""
    if len(decisions) > _MAX_DECISIONS:
        return f"{len(decisions)} decisions"
    if [index for index, _ in decisions] != [instruction.index for instruction in template]:
        return "decisions for other instructions than the template samples"
    for (_, values), instruction in zip(decisions, template, strict=True):
        reason = _check(values, instruction)
        if reason is not None:
            return f"instruction {instruction.index}: {reason}"
    return None


def _check(values: tuple[int, ...], instruction: SamplingInstruction) -> str | None:
    match instruction.kind:
        case "perfect-tile" | "partitioned-tile":
            return _check_tile(values, instruction)
        case "categorical":
            return _check_one(values, 0, instruction.candidates - 1)
        case "compute-location":
            return _check_one(values, _FIRST_LOCATION, _LAST_LOCATION)


def _check_tile(values: tuple[int, ...], instruction: SamplingInstruction) -> str | None:
    if len(values) != instruction.n:
        return f"{len(values)} factors instead of {instruction.n}"
    highest = instruction.extent or _MAX_FACTOR
    if not all(1 <= value <= highest for value in values):
        return f"a factor outside 1 to {highest}"
    if instruction.max_innermost and values[-1] > instruction.max_innermost:
        return f"innermost factor {values[-1]} above {instruction.max_innermost}"
    return None


def _check_one(values: tuple[int, ...], lowest: int, highest: int) -> str | None:
    if len(values) != 1 or not lowest <= values[0] <= highest:
        return f"{values} is not one of {lowest} to {highest}"
    return None
