"""What tuning did and cost, in a sentence."""

from __future__ import annotations

from tunegate.artifacts.verdicts import TuningSummary
from tunegate.plurals import plural
from tunegate.render.stopped import tuning_ended
from tunegate.render.units import duration, energy, money


def tuning_words(tuning: TuningSummary) -> str:
    """Trials with their price, then where the schedules of all tasks come from."""
    if not tuning.tasks:
        return "no task of this change is compiled"
    of_tasks = plural(tuning.tasks, "task")
    sources = f"{tuning.exact} of {of_tasks} tuned before{_others(tuning)}"
    ended = tuning_ended(tuning)
    if not tuning.trials:
        spent = f" in {duration(tuning.seconds)}" if tuning.seconds >= 1 else ""
        return f"no trial{spent}, {ended}; {sources}"
    known = [money(tuning.usd)] if tuning.usd is not None else []
    known += [energy(tuning.joules, tuning.energy_source)] if tuning.joules is not None else []
    price = "".join(f", {each}" for each in known)
    spent = f"{plural(tuning.trials, 'trial')} in {duration(tuning.seconds)}{price}"
    return f"{spent}, {ended}; {sources}"


def _others(tuning: TuningSummary) -> str:
    """What the cache had no tuned schedule of, as the run began, and who tunes it."""
    transferred = tuning.transfer - tuning.unfinished
    counted = (
        (tuning.unfinished, "begun"),
        (transferred, "transferred from other shapes"),
        (tuning.miss, "untuned"),
    )
    known = [(number, word) for number, word in counted if number]
    kinds = ", ".join(f"{number} {word}" for number, word in known)
    others = tuning.transfer + tuning.miss
    if not tuning.waiting:
        return f", {kinds}" if kinds else ""
    if tuning.waiting == others:
        return f", {kinds}, left to tunegate warm"
    left = f"{tuning.waiting} {'is' if tuning.waiting == 1 else 'are'} left to tunegate warm"
    which = f"the other {others}" if tuning.exact else f"these {others}"
    how = f" ({kinds})" if len(known) > 1 else f", all {known[0][1]},"
    return f"; of {which}{how} {left}"
