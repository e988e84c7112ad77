"""The block pairs of a launch that count, by a GPU's clocks.

A clock that moved for its own reasons, a device held back by its heat, or somebody else's
process on it disturb a pair. A clock that is lower whenever one side runs does not: that side
draws more power, and whoever ships it gets the lower clock too. Such a pair counts, and the
change is called clock-mediated.

Between launches the same question is asked once more. A slowdown in seconds that is none in clock
cycles fails only where the lower clock came with the head: the sides take turns, so a clock that
moves by itself befalls either of them.
"""

import itertools
import math
import statistics
from collections.abc import Sequence

from tunegate.artifacts.measurements import Clocks, GpuState, Launch

MAX_DROPPED = 0.25
"""The share of a launch's pairs that may be dropped: with more of them it does not count."""
_MOVED = 0.015
"""The change of a clock that counts, as ln of a ratio. One clock step of a device is up to 1.1%."""
_STEADY, _ABSENT = 0.8, 0.2
OWN_DOING = frozenset({"power cap"})
"""Throttle reasons that a program causes by itself, on either side. All others come from
outside."""


def kept_pairs(base: Sequence[GpuState], head: Sequence[GpuState]) -> tuple[bool, ...]:
    """Returns, for each pair of blocks, whether it is kept, by the device's state right after
    either block."""
    clock_moves = _clock_moved(base, head)
    held_back = _held_back(base, head)
    strangers = _strangers(base, head)
    return tuple(not any(each) for each in zip(clock_moves, held_back, strangers, strict=True))


def clocks_of(base: Sequence[GpuState], head: Sequence[GpuState]) -> Clocks | None:
    """Returns the clocks of a launch, None for a device that reports none, such as a CPU."""
    if all(state == GpuState() for state in (*base, *head)):
        return None
    reasons = {reason for state in (*base, *head) for reason in state.throttled}
    pairs_kept = kept_pairs(base, head)
    counts = pairs_kept if any(pairs_kept) else (True,) * len(pairs_kept)
    return Clocks(
        base_mhz=_mean([state.sm_mhz for state in itertools.compress(base, counts)]),
        head_mhz=_mean([state.sm_mhz for state in itertools.compress(head, counts)]),
        dropped=pairs_kept.count(False),
        is_mediated=_side_difference(base, head) != 0.0,
        throttled=tuple(sorted(reasons)),
    )


def usual_clocks(launches: Sequence[Clocks]) -> Clocks | None:
    """The means over launches; mediated where most of the launches were."""
    if not launches:
        return None
    return Clocks(
        base_mhz=_mean([launch.base_mhz for launch in launches]),
        head_mhz=_mean([launch.head_mhz for launch in launches]),
        dropped=sum(launch.dropped for launch in launches),
        is_mediated=2 * sum(launch.is_mediated for launch in launches) > len(launches),
        throttled=tuple(sorted({reason for launch in launches for reason in launch.throttled})),
    )


def effects_in_cycles(launches: Sequence[Launch]) -> list[float] | None:
    """Returns ln(head / base) of each launch in clock cycles. None where seconds alone count: a
    launch does not tell both clocks, or a lower clock comes with the head."""
    effects = [
        (launch.effect, launch.clocks.base_mhz, launch.clocks.head_mhz)
        for launch in launches
        if launch.clocks and launch.clocks.base_mhz and launch.clocks.head_mhz
    ]
    clocks = usual_clocks([launch.clocks for launch in launches if launch.clocks])
    if not effects or len(effects) < len(launches) or clocks is None:
        return None
    lower = sum(head_mhz < base_mhz for _, base_mhz, head_mhz in effects)
    if clocks.is_mediated or lower >= _STEADY * len(effects):
        return None
    return [effect + math.log(head_mhz / base_mhz) for effect, base_mhz, head_mhz in effects]


def _mean(mhz: Sequence[float | None]) -> float | None:
    measured_mhz = [each for each in mhz if each is not None]
    return statistics.fmean(measured_mhz) if measured_mhz else None


def _clock_moved(base: Sequence[GpuState], head: Sequence[GpuState]) -> list[bool]:
    usual = _side_difference(base, head)
    most = max(_MOVED, abs(usual) / 2)
    return [
        difference is not None and abs(difference - usual) > most
        for difference in _differences(base, head)
    ]


def _side_difference(base: Sequence[GpuState], head: Sequence[GpuState]) -> float:
    """Returns the clock difference that comes with the side: ln(head / base) if nearly all pairs
    agree in direction, else 0."""
    known_differences = [
        difference for difference in _differences(base, head) if difference is not None
    ]
    if not known_differences:
        return 0.0
    middle = statistics.median(known_differences)
    alike = sum(
        abs(difference) > _MOVED and (difference > 0) == (middle > 0)
        for difference in known_differences
    )
    return middle if alike >= _STEADY * len(known_differences) else 0.0


def _differences(base: Sequence[GpuState], head: Sequence[GpuState]) -> list[float | None]:
    return [
        math.log(after.sm_mhz / before.sm_mhz) if before.sm_mhz and after.sm_mhz else None
        for before, after in zip(base, head, strict=True)
    ]


def _held_back(base: Sequence[GpuState], head: Sequence[GpuState]) -> list[bool]:
    """Returns, for each pair, whether a throttle reason held the device back in it unlike in most
    pairs. A reason that comes with one side in most pairs, or that a program causes on both, is
    usual."""
    reasons = {reason for state in (*base, *head) for reason in state.throttled}
    out = [False] * len(base)
    for reason in reasons:
        sides = [[reason in state.throttled for state in side] for side in (base, head)]
        usual = _usual(reason, *sides)
        for number, states in enumerate(zip(*sides, strict=True)):
            out[number] |= states != usual
    return out


def _usual(reason: str, base: Sequence[bool], head: Sequence[bool]) -> tuple[bool, bool]:
    shares = [side.count(True) / len(side) for side in (base, head)]
    both = all(share >= _STEADY for share in shares)
    by_side = all(share >= _STEADY or share <= _ABSENT for share in shares)
    if not by_side or (both and reason not in OWN_DOING):
        return (False, False)
    return (shares[0] >= _STEADY, shares[1] >= _STEADY)


def _strangers(base: Sequence[GpuState], head: Sequence[GpuState]) -> list[bool]:
    """Returns for each pair of blocks whether a process appeared on the GPU after the first pair,
    which we did not start."""
    ours = {*base[0].processes, *head[0].processes} if base else set()
    return [
        not ours.issuperset({*before.processes, *after.processes})
        for before, after in zip(base, head, strict=True)
    ]
