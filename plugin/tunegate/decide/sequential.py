"""The stopping rule: launches follow each other until the question is decided or the budget is
spent."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from tunegate.config import GateConfig
from tunegate.decide import guards
from tunegate.decide.decision import Bounds, CellDecision, bounds, decide_cell, projected_launches

_FEWEST_PAIRS = 4
Stop = Literal["decided", "hopeless", "budget", "disturbed"]


class StoppingRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule, fixed before measuring. The error is split over all `analyses`; those after `paid`
    launches are an extension. `margin_percent` is for the median, `tail_margin_percent` for the
    mean and the tail inside a launch, `energy_margin_percent` for the energy of an inference (None:
    not tested). After a pass, slow modes of the share `rare` or more are looked for (0: none).
    Fewer than `min_launches` launches pass nothing."""

    margin_percent: float
    analyses: tuple[int, ...]
    cells: int
    paid: int | None = None
    tail_margin_percent: float = 10.0
    rare: float = 0.0
    energy_margin_percent: float | None = None
    load_margin_percent: float | None = None
    min_launches: int = 0

    @property
    def margin(self) -> float:
        return math.log1p(self.margin_percent / 100)

    @property
    def tail_margin(self) -> float:
        return math.log1p(self.tail_margin_percent / 100)

    @property
    def budget(self) -> int:
        """The number of launches without an extension."""
        return self.analyses[-1] if self.paid is None else self.paid

    def most_launches(self, launches: int) -> int:
        """Returns the largest number of launches possible once `launches` were made."""
        return self.budget if launches <= self.budget else self.analyses[-1]


def stopping_rule(
    gate: GateConfig, analyses: tuple[int, ...], cells: int, paid: int | None = None
) -> StoppingRule:
    """Returns the rule that the gate's configuration gives the launches of one cell."""
    return StoppingRule(
        margin_percent=gate.margin_percent,
        analyses=analyses,
        cells=cells,
        paid=paid,
        tail_margin_percent=gate.tail_margin_percent,
        rare=gate.rare_launches,
        energy_margin_percent=gate.energy_margin_percent,
        load_margin_percent=gate.load_margin_percent,
        min_launches=gate.min_launches,
    )


def decide_median(interval: Bounds, launches: int, rule: StoppingRule) -> CellDecision:
    """Returns the decision on the median after `launches` launches."""
    decision = decide_cell(interval, rule.margin)
    return "undecided" if decision == "pass" and launches < rule.min_launches else decision


def stop_after(effects: Sequence[float], rule: StoppingRule) -> Stop | None:
    """Returns the reason to stop after these launches, or None to go on. It stops only at an
    analysis; launches after the last analysis do not count. The extension is used only if it is
    likely to decide."""
    is_last = len(effects) >= rule.analyses[-1]
    if not is_last and len(effects) not in rule.analyses:
        return None
    effects = effects[: rule.analyses[-1]]
    interval = bounds(effects, analyses=len(rule.analyses), cells=rule.cells)
    if decide_median(interval, len(effects), rule) != "undecided":
        return "decided"
    if is_last:
        return "budget"
    error = interval.spread / math.sqrt(len(effects))
    total = projected_launches(interval, rule.margin, analyses=len(rule.analyses), nearer_by=error)
    if is_hopeless(total, rule.budget):
        return "hopeless"
    if len(effects) < rule.budget:
        return None
    likely = projected_launches(interval, rule.margin, analyses=len(rule.analyses))
    return None if likely is not None and likely <= rule.analyses[-1] else "budget"


def guarded_stop(
    effects: Sequence[float],
    noises: Sequence[float],
    controls: Sequence[float],
    rule: StoppingRule,
    *,
    is_late: bool = False,
) -> Stop | None:
    """Returns what `stop_after` returns, for launches that may have been disturbed. `noises` are
    the standard errors of `effects`, `controls` the effects of the base against itself. A new
    launch moves what is usual, so the number of counted launches may fall and an analysis may be
    skipped. Nothing goes on where it `is_late`."""
    counts = guards.are_undisturbed(noises, rule.margin)
    steady_effects = [effect for effect, keep in zip(effects, counts, strict=True) if keep]
    has_tripped = (
        guards.outlying_controls(controls, steady_effects, rule.margin)
        > guards.MAX_OUTLYING_CONTROLS
    )
    if not has_tripped and not guards.is_too_disturbed(counts):
        return stop_after(steady_effects, rule) or ("budget" if is_late else None)
    if _stands(steady_effects, rule, guards.possible_error(noises, controls, rule.margin)):
        return "decided"
    may_end = not (has_tripped or is_late) and guards.may_be_a_burst(len(counts), rule.budget)
    return None if may_end else "disturbed"


def _stands(launch_effects: Sequence[float], rule: StoppingRule, slack: float) -> bool:
    """Returns whether the last decision holds with `slack` against it. A model that takes twenty
    times as long has failed on any machine."""
    effects = launch_effects[: last_analysis(len(launch_effects), rule.analyses)]
    if len(effects) < 2:  # noqa: PLR2004 -- a spread needs two
        return False
    interval = bounds(effects, analyses=len(rule.analyses), cells=rule.cells)
    passes = interval.high + slack < rule.margin and len(effects) >= rule.min_launches
    return interval.low - slack > rule.margin or passes


def likely_end(effects: Sequence[float], rule: StoppingRule) -> int:
    """Returns the analysis that is likely to decide: the first one before any launch, the last of
    the budget if none is in sight."""
    likely: int | None = rule.analyses[0]
    if len(effects) > 1:
        interval = bounds(effects, analyses=len(rule.analyses), cells=rule.cells)
        likely = projected_launches(interval, rule.margin, analyses=len(rule.analyses))
    last = rule.most_launches(len(effects))
    if likely is None:
        return last
    return next((size for size in rule.analyses if max(likely, len(effects)) <= size < last), last)


def last_analysis(launches: int, analyses: tuple[int, ...]) -> int:
    """Returns the number of launches that count: those up to the last planned analysis reached."""
    past_analyses = [size for size in analyses if size <= launches]
    return past_analyses[-1] if past_analyses else launches


def replanned_pairs(
    within: float, between: float, *, start_seconds: float, pair_seconds: float
) -> int:
    """Returns the block pairs for each launch to come (the optimum of Kalibera & Jones): many if
    the noise is inside a launch, few if only new processes average it out."""
    if between <= 0 or pair_seconds <= 0:
        return 24
    pairs = math.sqrt(start_seconds / pair_seconds) * within / between
    return max(_FEWEST_PAIRS, min(24, round(pairs)))


# The times of the interim analyses are planned before measuring, so looking often costs no error.

PLANNED = (4, 6, 9, 13, 19, 28, 41, 60)


def affordable_analyses(seconds: float, launch_seconds: float) -> tuple[int, ...]:
    """Returns the analyses whose launches fit the budget, at least the first."""
    fitting = tuple(size for size in PLANNED if size * launch_seconds <= seconds)
    return fitting or PLANNED[:1]


def affordable_pairs(
    pairs: int, seconds: float, *, start_seconds: float, pair_seconds: float
) -> int:
    """Returns the block pairs of the launches up to the first analysis: fewer than `pairs` for a
    slow model, at least four."""
    if pair_seconds <= 0:
        return pairs
    fitting = (seconds / PLANNED[0] - start_seconds) / pair_seconds
    return max(_FEWEST_PAIRS, min(pairs, 2 * int(fitting / 2)))


def is_hopeless(total: int | None, budget: int) -> bool:
    """Returns whether a decision needs more than four times the affordable launches."""
    return total is not None and total > 4 * budget
