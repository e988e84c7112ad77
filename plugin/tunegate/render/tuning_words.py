"""Sentences on what tuning did and cost, and on the results of all tasks."""

from __future__ import annotations

from tunegate.artifacts.verdicts import TuningSummary
from tunegate.plurals import plural
from tunegate.render.stopped import tuning_ended
from tunegate.render.units import duration, energy, money


def tuning_words(tuning: TuningSummary) -> str:
    """Two sentences, without the last full stop. The numbers of tasks add up to the first one."""
    if not tuning.tasks:
        return "nothing here is compiled"
    return f"{_done(tuning)}. {_parts(tuning)}"


def _done(tuning: TuningSummary) -> str:
    """The trials, with their time and price."""
    trials = plural(tuning.trials, "trial") if tuning.trials else "no trial"
    spent = f" in {duration(tuning.seconds)}" if tuning.trials or tuning.seconds >= 1 else ""
    price = _price(tuning) if tuning.trials else ""
    return f"{trials}{spent}{price}, {tuning_ended(tuning)}"


def _price(tuning: TuningSummary) -> str:
    known = [money(tuning.usd)] if tuning.usd is not None else []
    known += [energy(tuning.joules)] if tuning.joules is not None else []
    return "".join(f", {each}" for each in known)


def _parts(tuning: TuningSummary) -> str:
    """Returns the results of all tasks in words."""
    if tuning.exact == tuning.tasks:
        all_of_them = f"All {tuning.tasks} tasks were known before"
        return "The only task was known before" if tuning.tasks == 1 else all_of_them
    parts = {
        "known before": tuning.exact,
        "tuned now": tuning.tuned,
        "measured once": tuning.measured,
        "begun": tuning.begun,
        "left to tunegate warm": tuning.waiting,
    }
    parts["not tuned"] = tuning.tasks - sum(parts.values())
    told = ", ".join(f"{number} {part}" for part, number in parts.items() if number > 0)
    return f"Of {plural(tuning.tasks, 'task')}: {told}"
