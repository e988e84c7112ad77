"""Guards against launches that something else disturbed, and machines that cannot hold still.

Both guards use how steady times were, never at which side was slower: leaving a launch out for
its noise moves no verdict to either side.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from tunegate.artifacts.measurements import Launch
from tunegate.decide.gpu_clocks import MAX_DROPPED

MIN_OF_MARGIN = 1 / 3
TIMES_THE_MEDIAN = 3.0
MAX_DISTURBED = 1 / 3
BURST_LAUNCHES = 12
CONTROL_EVERY = 6
MAX_OUTLYING_CONTROLS = 1
_FEWEST = 6
_SPREADS = 4.0


def undisturbed(noises: Sequence[float], margin: float) -> tuple[bool, ...]:
    """Returns for each launch whether it counts: its own noise is small beside the margin, or usual
    here. `noises` are standard errors of launch effects, infinite where a launch must not count; a
    machine that is always noisy keeps its launches, their spread makes its bounds wide enough."""
    limit = noise_limit(noises, margin)
    return tuple(noise <= limit and math.isfinite(noise) for noise in noises)


def noise_limit(noises: Sequence[float], margin: float) -> float:
    """The noise above which a launch does not count."""
    return max(margin * MIN_OF_MARGIN, TIMES_THE_MEDIAN * statistics.median(noises))


def possible_error(noises: Sequence[float], controls: Sequence[float], margin: float) -> float:
    """Returns the error that disturbances of the machine can have added to an effect, in ln units:
    twice the sum of the largest noise that still counts and the largest A/A control. A verdict that
    stands with twice that against it is right on any machine."""
    largest = max((abs(effect) for effect in controls), default=0.0)
    return 2 * (noise_limit(noises, margin) + largest)


def is_too_disturbed(kept: Sequence[bool]) -> bool:
    """More than a third of the launches do not count."""
    return len(kept) >= _FEWEST and kept.count(False) > MAX_DISTURBED * len(kept)


def may_be_a_burst(launches: int, budget: int) -> bool:
    """Returns whether to wait for the end of a burst instead of giving the machine up: a third of
    six launches is soon hit, a third of twelve is no accident."""
    return launches < min(BURST_LAUNCHES, budget)


def is_control_due(launches: int) -> bool:
    """Returns whether the base runs against itself next: after the first launch and every sixth
    one."""
    return launches % CONTROL_EVERY == 1


def outlying_controls(controls: Sequence[float], effects: Sequence[float], margin: float) -> int:
    """Returns the number of A/A controls that are too large to be an accident: over the margin, and
    over four times the spread of the launches. On healthy machines 0 to 2% of them are."""
    spread = statistics.stdev(effects) if len(effects) > 1 else 0.0
    limit = max(margin, _SPREADS * spread)
    return sum(abs(effect) > limit for effect in controls)


# The launches of a cell that count.


def counted(launches: Sequence[Launch], margin: float) -> list[Launch]:
    """Those that nothing disturbed. `margin` is ln(1 + the allowed slowdown)."""
    kept = undisturbed([noise_of(launch) for launch in launches], margin)
    return [launch for launch, keep in zip(launches, kept, strict=True) if keep]


def left_out(launches: Sequence[Launch], margin: float) -> list[Launch]:
    """The others. They are no noise where the head is slow in them."""
    kept = undisturbed([noise_of(launch) for launch in launches], margin)
    return [launch for launch, keep in zip(launches, kept, strict=True) if not keep]


def noise_of(launch: Launch) -> float:
    """Infinite where the clocks of the device left too little of it."""
    dropped = launch.clocks.dropped if launch.clocks else 0
    return math.inf if dropped > MAX_DROPPED * launch.pairs else launch.noise
