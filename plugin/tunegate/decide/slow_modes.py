"""Launches that are slow only sometimes, and the shares of such launches that are excluded.

A slow mode is a share of launches with one effect, beside the usual effect. Users pay the mean over
launches, so a mode matters if it lifts that mean to the worst that may pass. The cut-off lies half
way between the usual effect and such a mode. The number of launches over it is binomial, and one
lower binomial tail (Clopper & Pearson, Biometrika 26, 1934) excludes the shares that are too large
for the launches seen.

Two looks are planned beforehand and share the error of a pass. Over many launches the bounds of the
gate answer as well: one slow launch makes them too wide for a pass.
"""

import math
import statistics
from collections.abc import Iterable
from itertools import groupby

import msgspec
import numpy as np

from tunegate.artifacts.measurements import Launch
from tunegate.decide.distributions import binomial_at_most, lower_share, normal_probability

FIRST_ERROR, SECOND_ERROR = 0.03, 0.013
"""The errors of the two looks. With the bounds of the gate they add up to the error of a pass. The
first look needs 16 starts, none of them slow, to exclude a share of 0.2."""
POINTS_PERCENT = 2.0
"""A mode is promised to be found if the mean exceeds the margin by this many percentage points."""
MAX_SHARE = 0.6
"""A mode of a larger share is not rare: the bounds over launches see it."""
_STEPS = 12
_FINEST = 0.01
_SCALE = 1.4826
_MIN_SPREAD = 0.0002


class HeadStarts(msgspec.Struct, frozen=True, kw_only=True):
    """The effects, ln(head / base), of all starts of the head. In `paired` launches the base's side
    may be the slow one, which says how often the machine is. `worst` is the ln of the mean that
    must not pass. The bounds of `bounded` launches passed; they do not cover what was `probed`, nor
    launches `left_out` for their noise although one side was slow. `second` is the planned number
    of starts of the second look, once the first was taken."""

    effects: tuple[float, ...]
    paired: tuple[float, ...]
    worst: float
    bounded: int = 0
    probed: tuple[float, ...] = ()
    left_out: tuple[float, ...] = ()
    second: int | None = None

    @property
    def error(self) -> float:
        return FIRST_ERROR if self.second is None else SECOND_ERROR

    @property
    def usual(self) -> float:
        return statistics.median(self.effects)

    @property
    def robust_spread(self) -> float:
        """The robust spread of one launch: the median absolute deviation, scaled to a normal
        distribution."""
        usual = self.usual
        deviations = [abs(effect - usual) for effect in self.effects]
        return max(_MIN_SPREAD, _SCALE * statistics.median(deviations))


def cut_off(share: float, usual: float, worst: float) -> float:
    """Returns the effect from which a launch counts as one of a slow mode of that share."""
    slow = (math.exp(worst) - (1 - share) * math.exp(usual)) / share
    return (usual + math.log(max(slow, math.exp(usual)))) / 2


def lowest_cut_off(usual: float, worst: float) -> float:
    """Returns the effect below which no launch belongs to a mode that matters."""
    return cut_off(MAX_SHARE, usual, worst)


def is_excluded(share: float, starts: HeadStarts) -> bool:
    """Returns whether a mode of that share that matters would hardly have shown so few slow
    launches. If the usual launch is too slow already, nothing is excluded."""
    if starts.usual >= starts.worst:
        return False
    cut = cut_off(share, starts.usual, starts.worst)
    return _is_bounded(share, cut, starts) or _is_counted(share, cut, starts)


def is_clean(rare: float, starts: HeadStarts) -> bool:
    """Returns whether every mode of the share `rare` or more is excluded."""
    return not open_shares(rare, starts)


def open_shares(rare: float, starts: HeadStarts) -> list[float]:
    """Returns the shares of `rare` or more that are not excluded."""
    return [share for share in _shares(rare) if not is_excluded(share, starts)]


def excluded_share(starts: HeadStarts) -> float | None:
    """Returns the smallest share from which on every mode is excluded, None if there is none."""
    smallest = None
    for share in reversed(_shares(_FINEST, 5 * _STEPS)):
        if not is_excluded(share, starts):
            break
        smallest = share
    return smallest


def slow_starts(rare: float, starts: HeadStarts) -> int:
    """Returns the number of starts over the cut-off of the rarest mode in question, 0 if the usual
    start is too slow already."""
    if starts.usual >= starts.worst:
        return 0
    cut = cut_off(rare, starts.usual, starts.worst)
    return sum(effect >= cut for effect in starts.effects)


def starts_needed(rare: float, error: float = FIRST_ERROR) -> int:
    """Returns the number of starts that exclude a share of `rare` if none is slow."""
    return math.ceil(math.log(error) / math.log1p(-rare))


def second_look(rare: float, starts: HeadStarts, most: int) -> int | None:
    """Returns the number of starts that would exclude the share with the rest of the error if no
    further start is slow, None if `most` are not enough."""
    usual = starts.usual
    for count in range(len(starts.effects) + 1, most + 1):
        quiet = (usual,) * (count - len(starts.effects))
        quiet_starts = msgspec.structs.replace(
            starts,
            effects=(*starts.effects, *quiet),
            paired=(*starts.paired, *quiet),
            second=count,
        )
        if is_clean(rare, quiet_starts):
            return count
    return None


def _is_bounded(share: float, cut: float, starts: HeadStarts) -> bool:
    """Returns whether the bounds over launches exclude the mode. Slow starts outside those bounds
    lead to more launches first."""
    unknown = (*starts.left_out, *(starts.probed if starts.second is None else ()))
    return (1 - share) ** starts.bounded <= starts.error and not any(x >= cut for x in unknown)


def _is_counted(share: float, cut: float, starts: HeadStarts) -> bool:
    """Returns whether the number of slow starts excludes a mode of that share. Noise may hide a
    slow start and a machine may slow down either side; both are allowed for. After the second look
    there is no other."""
    if starts.second is not None and len(starts.effects) > starts.second:
        return False
    slow = sum(effect >= cut for effect in starts.effects)
    visible = normal_probability((cut - starts.usual) / starts.robust_spread)
    chance = min(1.0, share * visible + _on_the_base(starts, cut))
    return binomial_at_most(slow, len(starts.effects), chance) <= starts.error


def _on_the_base(starts: HeadStarts, cut: float) -> float:
    """Returns the lower bound on the share of launches in which the base was as slow: a mode of the
    machine."""
    mirror = 2 * starts.usual - cut
    return lower_share(sum(effect <= mirror for effect in starts.paired), len(starts.paired))


def _shares(rare: float, steps: int = _STEPS) -> list[float]:
    largest = max(rare, MAX_SHARE)
    return [float(share) for share in np.geomspace(rare, largest, steps)]


# Whether the slow starts all belong to some of the given input cases: then inputs, not chance, make
# them slow.


def slow_cases(starts: Iterable[Launch], cut: float) -> tuple[int, ...]:
    """Returns the cases whose starts all have an effect of `cut` or more, by medians or by means.
    None if a start of another case is slow too, or if no case is quick."""
    slow = {
        case: [_is_slow(launch, cut) for launch in launches] for case, launches in _by_case(starts)
    }
    cases = tuple(case for case, are_slow in slow.items() if all(are_slow))
    others = [each for case, are_slow in slow.items() if case not in cases for each in are_slow]
    return cases if others and not any(others) else ()


def _by_case(starts: Iterable[Launch]) -> list[tuple[int, list[Launch]]]:
    by_case = sorted((start for start in starts if start.case), key=lambda each: each.case)
    return [(case, list(its)) for case, its in groupby(by_case, key=lambda each: each.case)]


def _is_slow(start: Launch, cut: float) -> bool:
    by_mean = start.effect if start.mean_effect is None else start.mean_effect
    return max(start.effect, by_mean) >= cut
