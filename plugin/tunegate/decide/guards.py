"""Guards against disturbed launches and unsteady machines.

Both guards look at how steady times were, never at which side was slower. Leaving out a noisy
launch therefore favours neither side.
"""

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


def are_undisturbed(noises: Sequence[float], margin: float) -> tuple[bool, ...]:
    """Returns, for each launch, whether it counts: its noise is small beside the margin, or usual
    in this run. `noises` are standard errors of launch effects, infinite where a launch must not
    count. A machine that is always noisy keeps its launches; their spread widens the bounds."""
    limit = noise_limit(noises, margin)
    return tuple(noise <= limit and math.isfinite(noise) for noise in noises)


def noise_limit(noises: Sequence[float], margin: float) -> float:
    """Returns the noise above which a launch does not count."""
    return max(margin * MIN_OF_MARGIN, TIMES_THE_MEDIAN * statistics.median(noises))


def possible_error(noises: Sequence[float], controls: Sequence[float], margin: float) -> float:
    """Returns the largest error, in ln units, that disturbances can have added to an effect: twice
    the sum of the noise limit and the largest A/A control."""
    largest = max((abs(effect) for effect in controls), default=0.0)
    return 2 * (noise_limit(noises, margin) + largest)


def is_too_disturbed(counts: Sequence[bool]) -> bool:
    """Returns whether more than a third of the launches do not count."""
    return len(counts) >= _FEWEST and counts.count(False) > MAX_DISTURBED * len(counts)


def may_be_a_burst(launches: int, budget: int) -> bool:
    """Returns whether to wait for the end of a burst before giving up. A third of six launches can
    be an accident; a third of twelve is not."""
    return launches < min(BURST_LAUNCHES, budget)


def is_control_due(launches: int) -> bool:
    """Returns whether an A/A control comes next: after the first launch and every sixth."""
    return launches % CONTROL_EVERY == 1


def outlying_controls(controls: Sequence[float], effects: Sequence[float], margin: float) -> int:
    """Returns the number of A/A controls that are too large to be chance: over the margin, and over
    four times the spread of the launches. On healthy machines 0 to 2% are."""
    spread = statistics.stdev(effects) if len(effects) > 1 else 0.0
    limit = max(margin, _SPREADS * spread)
    return sum(abs(effect) > limit for effect in controls)


# The launches of a cell that count.


def undisturbed_launches(launches: Sequence[Launch], margin: float) -> list[Launch]:
    """Returns the launches that nothing disturbed. `margin` is ln(1 + the allowed slowdown)."""
    counts = are_undisturbed([noise_of(launch) for launch in launches], margin)
    return [launch for launch, keep in zip(launches, counts, strict=True) if keep]


def disturbed_launches(launches: Sequence[Launch], margin: float) -> list[Launch]:
    """Returns the launches that `undisturbed_launches` leaves out. One in which the head is slow
    still counts as a slow start."""
    counts = are_undisturbed([noise_of(launch) for launch in launches], margin)
    return [launch for launch, keep in zip(launches, counts, strict=True) if not keep]


def noise_of(launch: Launch) -> float:
    """Returns the noise of a launch, infinite if the device's clocks dropped too many of its
    pairs."""
    pairs_lost = launch.clocks.dropped if launch.clocks else 0
    return math.inf if pairs_lost > MAX_DROPPED * launch.pairs else launch.noise
