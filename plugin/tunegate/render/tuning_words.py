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
    sources = f"{tuning.exact} of {of_tasks} found tuned in the cache"
    transferred = f", {tuning.transfer} found for other shapes" if tuning.transfer else ""
    ended = tuning_ended(tuning)
    if not tuning.trials:
        return f"no trial, {ended}; {sources}{transferred}"
    known = [money(tuning.usd)] if tuning.usd is not None else []
    known += [energy(tuning.joules, tuning.energy_source)] if tuning.joules is not None else []
    price = "".join(f", {each}" for each in known)
    spent = f"{plural(tuning.trials, 'trial')} in {duration(tuning.seconds)}{price}"
    return f"{spent}, {ended}; {sources}{transferred}"
