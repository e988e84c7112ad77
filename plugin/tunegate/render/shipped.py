"""Which runtime each model ships with, what that saved, and what nobody measured, in sentences.

In percent: the times of that comparison are others than those of base and head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tunegate.artifacts.builds import Build, RuntimeChoice
from tunegate.artifacts.verdicts import Report
from tunegate.plurals import plural
from tunegate.wording.latency import compared_times


def shipped(report: Report, code: Callable[[str], str]) -> Iterator[str]:
    """One sentence for each model whose head had a choice, or runs schedules that were picked;
    `code` marks a model's name."""
    for built in report.run.builds if report.run else ():
        if built.head is None or built.head.error:
            continue
        picked = _picked(built.head)
        if built.head.choice is not None or picked:
            before = built.base if built.base and not built.base.error else None
            where = f"{code(built.cell.model)} on {code(built.cell.target)}"
            ships = f"{_choice(built.head)}{_changed(before, built.head)}{picked}"
            yield f"{where} ships with {ships}."


def _picked(build: Build) -> str:
    """The kernels whose schedule nobody measured: the whole model was measured with them."""
    picked = sum(task.source == "prior" for task in build.tasks)
    if not picked:
        return ""
    run, schedules = ("runs", "a schedule") if picked == 1 else ("run", "schedules")
    kernels = plural(len(build.tasks), "kernel")
    return f"; {picked} of {kernels} {run} {schedules} that the prior picked, unmeasured alone"


def _choice(build: Build) -> str:
    choice = build.choice or RuntimeChoice()
    ours = choice.ms_of(build.candidate)
    others = sorted(
        (time for time in choice.times if time.candidate != build.candidate), key=lambda t: t.ms
    )
    if ours is None or not others:
        return build.title + _why_not(choice)
    measured = ", ".join(compared_times(ours, other.ms, other.title) for other in others)
    return f"{build.title}, {measured} when they were compared{_why_not(choice)}"


def _why_not(choice: RuntimeChoice) -> str:
    """What is wrong with the candidates that were not measured."""
    refused = [f"{each.title}: {_first_sentence(each.reason)}" for each in choice.refused]
    told = [*([_first_sentence(choice.reason)] if choice.reason else []), *refused]
    return f" ({'; '.join(told)})" if told else ""


def _first_sentence(text: str) -> str:
    """What is wrong; what to do about it does not matter to a model that ships all the same."""
    return text.partition(". ")[0].rstrip(".")


def _changed(before: Build | None, build: Build) -> str:
    if before is None or before.candidate == build.candidate:
        return ""
    return f"; the base runs with {before.title}"
