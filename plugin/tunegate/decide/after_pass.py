"""The steps that remain once the medians of the launches pass."""

from __future__ import annotations

import msgspec

from tunegate.decide.assessment import Assessment
from tunegate.decide.decision import bounds, projected_launches
from tunegate.decide.sequential import StoppingRule
from tunegate.decide.slow_modes import SECOND_ERROR, second_look, starts_needed


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """`probes` more fresh starts, or one more launch, or neither: then it is over.
    `starts` are those at which slow modes are asked about, as far as is planned."""

    probes: int = 0
    launch: bool = False
    starts: tuple[int, ...] = ()


def after_pass(
    found: Assessment, starts: tuple[int, ...], launches: int, rule: StoppingRule
) -> Next:
    """`launches` are all that were made."""
    decisions = {each.decision for each in (*found.inside, found.energy) if each is not None}
    if "fail" in decisions:
        return Next(starts=starts)
    if "undecided" in decisions:
        return Next(launch=launches < rule.analyses[-1], starts=starts)
    return _about_modes(found, starts, launches, rule) if rule.rare else Next()


def _about_modes(
    found: Assessment, starts: tuple[int, ...], launches: int, rule: StoppingRule
) -> Next:
    """A slow start is answered with more launches of both sides: they tell a slow head from a slow
    machine."""
    made = min(len(seen.effects) for seen in found.modes)
    if found.excluded.is_clean:
        return Next(starts=starts or (made,))
    first = starts_needed(rule.rare)
    if not starts and made < first:
        return Next(probes=first - made, starts=(first,))
    planned = starts or (made,)
    left = rule.analyses[-1] - launches
    if len(planned) == 1:
        planned = (planned[0], _second(found, rule, made + left) or made)
    may_pass = made < planned[1] or launches < _bounded_by(rule)
    return Next(launch=left > 0 and (may_pass or _may_fail(found, rule)), starts=planned)


def _second(found: Assessment, rule: StoppingRule, most: int) -> int | None:
    wanted = [second_look(rule.rare, seen, most) for seen in found.modes]
    known = [each for each in wanted if each is not None]
    return max(known) if len(known) == len(wanted) else None


def _bounded_by(rule: StoppingRule) -> int:
    """The analysis whose bounds answer by themselves; 0 where it cannot be paid for."""
    wanted = starts_needed(rule.rare, SECOND_ERROR)
    return next((size for size in rule.analyses if size >= wanted), 0)


def _may_fail(found: Assessment, rule: StoppingRule) -> bool:
    """Returns whether the remaining launches would likely prove that the mean is over the
    margin."""
    seen = found.modes[0]
    likely = bounds(seen.effects, analyses=len(rule.analyses), cells=rule.cells)
    projected = projected_launches(likely, rule.margin, analyses=len(rule.analyses))
    return likely.center > rule.margin and projected is not None and projected <= rule.analyses[-1]
