"""Sentences on the runtime that each model ships with, what that saved, and what nobody measured.
In short they have how many candidates are refused in place of the reasons.

In percent: the times of that comparison are others than those of base and head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tunegate.artifacts.builds import Build, CellBuilds, RuntimeChoice
from tunegate.artifacts.verdicts import Report, WarmedShipping
from tunegate.report.accuracy import estimates_in_words
from tunegate.report.escape import visible
from tunegate.wording import compared_times, plural

_TOLD_REASONS = 1


def shipped(report: Report, code: Callable[[str], str]) -> Iterator[str]:
    """Yields a sentence for each model whose head had a choice, or runs schedules that were picked;
    `code` marks a model's name."""
    for built in report.run.builds if report.run else ():
        if (head := _told(built)) is not None:
            yield f"{_ships(built, code)} with {_choice(head)}{_more(built)}."


def shipped_in_short(report: Report, code: Callable[[str], str]) -> Iterator[str]:
    """Few sentences for each of the same models, for where there is no room for all reasons."""
    for built in report.run.builds if report.run else ():
        if (head := _told(built)) is not None:
            found = f"{_ships(built, code)} with {_choice(head, in_short=True)}{_more(built)}"
            yield ". ".join((found, *_refused_in_short(head))) + "."


def shipping_in_words(found: WarmedShipping) -> str:
    """Says in one line what a model ships with, who chose it, and its error."""
    where = f"{visible(found.model)} on {visible(found.target)}"
    if found.reason:
        return f"{where} ships with nothing: {visible(found.reason, 600).rstrip('.')}."
    ships = f"{where} ships with {visible(found.title)}"
    chosen = ", as an earlier run chose" if found.is_remembered else ""
    unknown = ": the next run that builds it tells its error" if found.has_unknown_error else ""
    told = "; a ".join(estimates_in_words(found.estimates, is_drawn=found.is_drawn))
    trouble = "".join(f" {visible(each, 600).rstrip('.')}." for each in found.trouble)
    return f"{ships}{chosen}{unknown}{', with a ' if told else ''}{told}.{trouble}"


def _refused_in_short(build: Build) -> Iterator[str]:
    """Yields the number of refused candidates, where their reasons are left out."""
    refused = build.choice.refused if build.choice is not None else ()
    if len(refused) <= _TOLD_REASONS:
        return
    far_off = sum(each.error is not None for each in refused)
    of_them = f", {far_off} of them by the budget of accuracy" if far_off else ""
    yield f"{len(refused)} other candidates are refused{of_them}: the report has the reasons"


def _told(built: CellBuilds) -> Build | None:
    """The head, where there is something to tell of what it ships with."""
    if built.head is None or built.head.error:
        return None
    return built.head if built.head.choice is not None or _picked(built.head) else None


def _ships(built: CellBuilds, code: Callable[[str], str]) -> str:
    return f"{code(built.cell.model)} on {code(built.cell.target)} ships"


def _more(built: CellBuilds) -> str:
    before = built.base if built.base and not built.base.error else None
    return f"{_changed(before, built.head)}{_picked(built.head)}" if built.head else ""


def _picked(build: Build) -> str:
    """The kernels whose schedule nobody measured: the whole model was measured with them."""
    picked = sum(task.source == "prior" for task in build.tasks)
    if not picked:
        return ""
    run, schedules = ("runs", "a schedule") if picked == 1 else ("run", "schedules")
    kernels = plural(len(build.tasks), "kernel")
    return f"; {picked} of {kernels} {run} {schedules} that the prior picked, unmeasured alone"


def _choice(build: Build, *, in_short: bool = False) -> str:
    choice = build.choice or RuntimeChoice()
    ours = choice.ms_of(build.candidate)
    others = sorted(
        (time for time in choice.times if time.candidate != build.candidate), key=lambda t: t.ms
    )
    if ours is None or not others:
        return build.title + _why_not(choice, in_short=in_short)
    measured = ", ".join(compared_times(ours, other.ms, other.title) for other in others)
    why_not = _why_not(choice, in_short=in_short)
    return f"{build.title}, {measured} when they were compared{why_not}"


def _why_not(choice: RuntimeChoice, *, in_short: bool) -> str:
    """Returns the reasons of candidates that were not measured: in short, of a few of them."""
    is_told = not in_short or len(choice.refused) <= _TOLD_REASONS
    shown = choice.refused if is_told else ()
    refused = [f"{each.title}: {_first_sentence(each.reason)}" for each in shown]
    told = [*([_first_sentence(choice.reason)] if choice.reason else []), *refused]
    return f" ({'; '.join(told)})" if told else ""


def _first_sentence(text: str) -> str:
    """Returns the first sentence, the problem; the advice does not matter to a model that ships all
    the same."""
    return text.partition(". ")[0].rstrip(".")


def _changed(before: Build | None, build: Build) -> str:
    if before is None or before.candidate == build.candidate:
        return ""
    return f"; the base runs with {before.title}"
