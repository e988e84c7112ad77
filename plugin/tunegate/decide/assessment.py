"""The assessment of a cell's launches: the median, the inside of a launch, slow launches."""

import math
import statistics
from collections.abc import Sequence

import msgspec

from tunegate.artifacts.measurements import EnergyChange, Excluded, Inside, Launch, LoadChange
from tunegate.decide import slow_modes
from tunegate.decide.decision import Bounds, CellDecision, bounds, projected_launches
from tunegate.decide.gpu_clocks import effects_in_cycles
from tunegate.decide.guards import disturbed_launches, undisturbed_launches
from tunegate.decide.inside_launch import inside, mean_effects
from tunegate.decide.margins_beside_latency import energy_change, load_change
from tunegate.decide.sequential import StoppingRule, decide_median, last_analysis
from tunegate.decide.stalls import WANTED_BELOW_MS, may_matter

TAIL_POINTS_PERCENT = 5.0
"""A slow mode matters if it lifts the mean of all inferences by its margin and this many percentage
points."""
_CONFIDENCE_PERCENT = 95.0
_ENDLESS = 10.0


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """`median` is the decision by block medians alone over the `launches` that count; on a GPU it
    does not fail by a clock that moved by itself. `modes` are the slow modes by block medians and
    by block means of every start. `energy` and `load` are not part of the decision on latency."""

    launches: tuple[Launch, ...]
    bounds: Bounds
    median: CellDecision
    inside: tuple[Inside, ...]
    modes: tuple[slow_modes.HeadStarts, ...]
    excluded: Excluded
    energy: EnergyChange | None = None
    load: LoadChange | None = None

    @property
    def decision(self) -> CellDecision:
        """The decision of all tests: one fail is enough, a pass needs all."""
        tests = [self.median, *(each.decision for each in self.inside)]
        if "fail" in tests:
            return "fail"
        return "pass" if set(tests) == {"pass"} and self.excluded.is_clean else "undecided"

    def doubts_stalls(self, margin_percent: float) -> bool:
        """Returns whether more inferences of a fast model should tell whether stalls come with the
        head. `margin_percent` is the mean's."""
        is_open = self.decision != "fail" and self.launches[0].head_ms < WANTED_BELOW_MS
        return is_open and any(
            may_matter(each.stalls, is_costly=each.change_percent.center > margin_percent / 2)
            for each in self.inside
        )


def assess(
    launches: Sequence[Launch], probes: Sequence[Launch], starts: Sequence[int], rule: StoppingRule
) -> Assessment | None:
    """Returns the assessment, or None without an interval. `starts` are the start counts at which
    slow modes were looked for; the second look has the rest of the error."""
    # Only launches count that nothing disturbed, up to the last planned look: what is decided
    # between two looks would spend error that the rule does not have.
    steady = undisturbed_launches(launches, rule.margin)
    decisive = steady[: last_analysis(len(steady), rule.analyses)]
    if not _have_a_spread(decisive):
        return None
    analyses = len(rule.analyses)
    interval = bounds([launch.effect for launch in decisive], analyses=analyses, cells=rule.cells)
    tests = inside(decisive, margin=rule.tail_margin, analyses=analyses, cells=rule.cells)
    median = decide_median(interval, len(decisive), rule)
    if median == "fail" and not _is_slower_in_cycles(decisive, rule):
        median = "undecided"
    # Slow modes are looked for in disturbed launches, too, and in probes.
    second = starts[1] if len(starts) > 1 else None
    modes = tuple(
        msgspec.structs.replace(mode, second=second)
        for mode in _modes(launches, probes, rule, _launches_within_bounds(decisive, median, tests))
    )
    return Assessment(
        launches=tuple(decisive),
        bounds=interval,
        median=median,
        inside=tests,
        modes=modes,
        excluded=_exclude_slow_starts(modes, rule, _inferences(decisive), (*launches, *probes)),
        energy=energy_change(
            decisive, rule.energy_margin_percent, analyses=analyses, cells=rule.cells
        ),
        load=load_change(decisive, rule.load_margin_percent, analyses=analyses, cells=rule.cells),
    )


def _is_slower_in_cycles(launches: Sequence[Launch], rule: StoppingRule) -> bool:
    """Returns whether what fails in seconds is over the margin in cycles, where these count. The
    mean is enough: a clock is read now and then, so cycles scatter more than seconds."""
    effects = effects_in_cycles(launches)
    return effects is None or statistics.fmean(effects) > rule.margin


def worst_median(rule: StoppingRule) -> float:
    """Returns the mean over launches that a slow mode must not reach."""
    return math.log1p((rule.margin_percent + slow_modes.POINTS_PERCENT) / 100)


def worst_mean(rule: StoppingRule) -> float:
    """Returns the same limit for the mean of all inferences."""
    return math.log1p((rule.tail_margin_percent + TAIL_POINTS_PERCENT) / 100)


def _launches_within_bounds(
    decisive: Sequence[Launch], median: CellDecision, tests: Sequence[Inside]
) -> tuple[int, int]:
    """Returns the numbers of launches whose bounds pass the median and the mean, 0 for a test that
    does not pass."""
    by_mean = any(test.what == "mean" and test.is_resolved for test in tests)
    return len(decisive) * (median == "pass"), len(decisive) * by_mean


def _modes(
    launches: Sequence[Launch],
    probes: Sequence[Launch],
    rule: StoppingRule,
    counts: tuple[int, int],
) -> tuple[slow_modes.HeadStarts, ...]:
    """Returns the slow modes by medians and by means. A launch left out for its noise still counts
    as a start if the head is slow in it; otherwise a slow mode that is also noisy would never be
    seen."""
    usual = undisturbed_launches(launches, rule.margin)
    others = disturbed_launches(launches, rule.margin)
    by_median = _seen_starts(
        [x.effect for x in usual],
        [x.effect for x in others],
        [x.effect for x in probes],
        worst_median(rule),
        rule.rare,
    )
    by_mean = _seen_starts(
        mean_effects(usual), mean_effects(others), mean_effects(probes), worst_mean(rule), rule.rare
    )
    return tuple(
        msgspec.structs.replace(each, bounded=count)
        for each, count in zip((by_median, by_mean), counts, strict=True)
        if each is not None
    )


def _seen_starts(
    usual: Sequence[float],
    others: Sequence[float],
    probes: Sequence[float],
    worst: float,
    rare: float,
) -> slow_modes.HeadStarts | None:
    if not usual:
        return None
    usual, others, probes = (
        list(map(_finite_or_infinity, effects)) for effects in (usual, others, probes)
    )
    starts = slow_modes.HeadStarts(effects=(*usual, *probes), paired=tuple(usual), worst=worst)
    limit = slow_modes.cut_off(rare or 1.0, starts.usual, worst)
    slow = [effect for effect in others if abs(effect - starts.usual) >= limit - starts.usual]
    return msgspec.structs.replace(
        starts,
        effects=(*starts.effects, *slow),
        paired=(*usual, *slow),
        probed=tuple(probes),
        left_out=tuple(slow),
    )


def _finite_or_infinity(effect: float) -> float:
    """Returns the effect, or infinity if it is not a number, so that it excludes nothing."""
    return effect if math.isfinite(effect) else _ENDLESS


def _inferences(launches: Sequence[Launch]) -> int:
    """Returns the fewest inferences that any launch measured of the head's process."""
    times = [launch.head_times for launch in launches if launch.head_times is not None]
    return min((each.total for each in times), default=0)


def _exclude_slow_starts(
    modes: Sequence[slow_modes.HeadStarts],
    rule: StoppingRule,
    inferences: int,
    starts: Sequence[Launch],
) -> Excluded:
    """Returns the shares of slow launches that all kinds of modes exclude, by the kind with the
    most slow launches."""
    clean = not rule.rare or all(slow_modes.is_clean(rule.rare, mode) for mode in modes)
    shares = [slow_modes.excluded_share(mode) for mode in modes]
    known_shares = [share for share in shares if share is not None]
    share = max(known_shares) if known_shares and len(known_shares) == len(shares) else None
    slow_share, worst = _most_slow(modes, rule.rare, rule.rare or share or 1.0)
    cut = slow_modes.cut_off(slow_share, worst.usual, worst.worst)
    return Excluded(
        asked_percent=100 * rule.rare,
        share_percent=100 * share if share is not None else None,
        confidence_percent=_CONFIDENCE_PERCENT,
        mean_percent=100 * math.expm1(worst.worst),
        starts=len(worst.effects),
        slow=slow_modes.slow_starts(slow_share, worst),
        cut_off_percent=100 * math.expm1(cut),
        is_clean=clean,
        inferences=inferences,
        slow_cases=slow_modes.slow_cases(starts, cut),
    )


def _most_slow(
    modes: Sequence[slow_modes.HeadStarts], rare: float, usual: float
) -> tuple[float, slow_modes.HeadStarts]:
    """Returns the share and the kind with the most slow launches, among those not excluded if there
    are any."""
    unproven = [
        (share, mode) for mode in modes if rare for share in slow_modes.open_shares(rare, mode)
    ]
    pairs = unproven or [(usual, mode) for mode in modes]
    return max(pairs, key=lambda pair: slow_modes.slow_starts(*pair))


def _have_a_spread(launches: Sequence[Launch]) -> bool:
    """Returns whether there are at least two finite numbers: an interval needs a spread."""
    effects = [launch.effect for launch in launches]
    return len(effects) > 1 and all(math.isfinite(effect) for effect in effects)


# The steps left once the medians pass.


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """The next step: `probes` more fresh starts, or one more launch, or neither. `starts` are the
    planned start counts at which slow modes are looked for."""

    probes: int = 0
    launch: bool = False
    starts: tuple[int, ...] = ()


def after_pass(
    assessment: Assessment, starts: tuple[int, ...], launches: int, rule: StoppingRule
) -> Next:
    """Returns the next step after the median passed. `launches` counts every launch made."""
    tests = (*assessment.inside, assessment.energy, assessment.load)
    decisions = {test.decision for test in tests if test is not None}
    if "fail" in decisions:
        return Next(starts=starts)
    if "undecided" in decisions:
        return Next(launch=launches < rule.analyses[-1], starts=starts)
    return _about_modes(assessment, starts, launches, rule) if rule.rare else Next()


def _about_modes(
    assessment: Assessment, starts: tuple[int, ...], launches: int, rule: StoppingRule
) -> Next:
    """Returns the next step for slow modes. A slow start leads to more launches of both sides: they
    tell a slow head from a slow machine."""
    probes = min(len(mode.effects) for mode in assessment.modes)
    if assessment.excluded.is_clean:
        return Next(starts=starts or (probes,))
    first = slow_modes.starts_needed(rule.rare)
    if not starts and probes < first:
        return Next(probes=first - probes, starts=(first,))
    looks = starts or (probes,)
    rest = rule.analyses[-1] - launches
    if len(looks) == 1:
        looks = (looks[0], _second(assessment, rule, probes + rest) or probes)
    may_pass = probes < looks[1] or launches < _bounded_by(rule)
    return Next(launch=rest > 0 and (may_pass or _may_fail(assessment, rule)), starts=looks)


def _second(assessment: Assessment, rule: StoppingRule, most: int) -> int | None:
    looks = [slow_modes.second_look(rule.rare, mode, most) for mode in assessment.modes]
    known_looks = [each for each in looks if each is not None]
    return max(known_looks) if len(known_looks) == len(looks) else None


def _bounded_by(rule: StoppingRule) -> int:
    """Returns the analysis whose bounds exclude the modes by themselves, 0 if it cannot be paid
    for."""
    starts = slow_modes.starts_needed(rule.rare, slow_modes.SECOND_ERROR)
    return next((size for size in rule.analyses if size >= starts), 0)


def _may_fail(assessment: Assessment, rule: StoppingRule) -> bool:
    """Returns whether the remaining launches would likely prove the mean over the margin."""
    mode = assessment.modes[0]
    likely = bounds(mode.effects, analyses=len(rule.analyses), cells=rule.cells)
    total = projected_launches(likely, rule.margin, analyses=len(rule.analyses))
    return likely.center > rule.margin and total is not None and total <= rule.analyses[-1]
