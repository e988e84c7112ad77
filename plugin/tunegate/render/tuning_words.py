"""What tuning did and cost in a sentence, and what was known or is left in another."""

from __future__ import annotations

from tunegate.artifacts.verdicts import TuningSummary
from tunegate.plurals import plural
from tunegate.render.stopped import tuning_ended
from tunegate.render.units import duration, energy, money


def tuning_words(tuning: TuningSummary) -> str:
    """Two sentences, without the last full stop. Their numbers of tasks add up."""
    if not tuning.tasks:
        return "no task of this change is compiled"
    own = max(0, tuning.tasks - tuning.exact - tuning.waiting)
    return f"{_done(tuning, own)}. {_others(tuning, is_counted=own > 0)}"


def _done(tuning: TuningSummary, own: int) -> str:
    """The trials on the tasks that this run had to tune, with their price."""
    trials = plural(tuning.trials, "trial") if tuning.trials else "no trial"
    of_tasks = plural(tuning.tasks, "task")
    on = f" on {of_tasks if own == tuning.tasks else f'{own} of {of_tasks}'}" if own else ""
    spent = f" in {duration(tuning.seconds)}" if tuning.trials or tuning.seconds >= 1 else ""
    price = _price(tuning) if tuning.trials else ""
    return f"{trials}{on}{spent}{price}, {tuning_ended(tuning)}"


def _price(tuning: TuningSummary) -> str:
    known = [money(tuning.usd)] if tuning.usd is not None else []
    known += [energy(tuning.joules, tuning.energy_source)] if tuning.joules is not None else []
    return "".join(f", {each}" for each in known)


def _others(tuning: TuningSummary, *, is_counted: bool) -> str:
    """What the cache had as the run began, and what another command tunes. `is_counted`: the number
    of all tasks has been told."""
    if tuning.exact == tuning.tasks:
        return "The only task was tuned before" if tuning.tasks == 1 else _all(tuning.tasks)
    of_all = "" if is_counted else f" of {plural(tuning.tasks, 'task')}"
    left = f"{tuning.waiting}{'' if tuning.exact else of_all} {_are(tuning.waiting)}"
    left = f"{left} left to tunegate warm" if tuning.waiting else ""
    if not tuning.exact:
        return f"None was tuned before{f'; {left}' if left else ''}"
    before = f"{tuning.exact}{of_all} {'was' if tuning.exact == 1 else 'were'} tuned before"
    return f"{before}; {left}" if left else before


def _all(tasks: int) -> str:
    return f"All {tasks} tasks were tuned before"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
