"""Sentences on what tuning did and cost, and on the results of all tasks."""

from collections.abc import Callable, Iterator

from tunegate.artifacts.builds import Build, CellBuilds, RuntimeChoice
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import Report, TuningSummary, WarmedShipping
from tunegate.report.accuracy import estimates_in_words
from tunegate.report.escape import visible
from tunegate.report.units import duration, energy, money, size
from tunegate.wording import compared_times, plural


def tuning_words(tuning: TuningSummary) -> str:
    """Returns the sentences, without the last full stop. The numbers of tasks add up to the
    first; those of an older toolchain's schedules are among the known ones."""
    if not tuning.tasks:
        return "nothing here is compiled"
    return ". ".join((f"{_trials(tuning)}", _parts(tuning), *_older_schedule_lines(tuning)))


def _trials(tuning: TuningSummary) -> str:
    """Returns the trials, with their time and price."""
    trials = plural(tuning.trials, "trial") if tuning.trials else "no trial"
    spent = f" in {duration(tuning.seconds)}" if tuning.trials or tuning.seconds >= 1 else ""
    price = _price(tuning) if tuning.trials else ""
    return f"{trials}{spent}{price}, {tuning_ended(tuning)}"


def _price(tuning: TuningSummary) -> str:
    amounts = [money(tuning.usd)] if tuning.usd is not None else []
    amounts += [energy(tuning.joules)] if tuning.joules is not None else []
    return "".join(f", {amount}" for amount in amounts)


def _parts(tuning: TuningSummary) -> str:
    """Returns the results of all tasks in words."""
    if tuning.exact == tuning.tasks and not tuning.not_asked:
        if tuning.tasks == 1:
            again = ", and tried again" if tuning.tried_again else ""
            return f"The only task was known before{again}"
        again = f", {tuning.tried_again} of them tried again" if tuning.tried_again else ""
        return f"All {tuning.tasks} tasks were known before{again}"
    parts = {
        "known before": tuning.exact - tuning.not_asked,
        "known to an older toolchain only": tuning.not_asked,
        "tuned now": tuning.tuned,
        "measured once": tuning.measured,
        "begun": tuning.begun,
        "left to tunegate warm": tuning.waiting,
    }
    parts["not tuned"] = tuning.tasks - sum(parts.values())
    counts = ", ".join(f"{number} {part}" for part, number in parts.items() if number > 0)
    again = f". Of those known, {tuning.tried_again} tried again" if tuning.tried_again else ""
    return f"Of {plural(tuning.tasks, 'task')}: {counts}{again}"


def _of_older(tuning: TuningSummary) -> int:
    """Returns the number of tasks that an older toolchain had schedules for."""
    return tuning.kept + tuning.lost + tuning.still_lost + tuning.not_asked


def _older_schedule_lines(tuning: TuningSummary) -> Iterator[str]:
    """Yields the results for schedules of an older toolchain, if there are any."""
    parts = {
        "kept": tuning.kept,
        "lost to defaults": tuning.lost,
        "not yet asked": tuning.not_asked,
    }
    if tuning.still_lost:
        parts["slower than defaults as before"] = tuning.still_lost
    if _of_older(tuning):
        counts = ", ".join(f"{part} {number}" for part, number in parts.items())
        yield f"Schedules of an older toolchain: {counts}"


# The reasons why tuning or measuring ended, in words.

STOPPED_WORDS = {
    "finished": "finished",
    "converged": "no more to gain",
    "target-latency": "fast enough",
    "exact": "known before",
    "budget": "budget spent",
    "seconds": "time budget spent",
    "usd": "money budget spent",
    "trials": "trial budget spent",
    "cancelled": "cancelled",
    "failed": "failed",
    "lost": "a shard was lost",
    "not-started": "not started",
    "shared": "left to tunegate warm",
    "behind": "too far behind another runtime",
    "decided": "decided",
    "hopeless": "too close to decide",
    "disturbed": "the machine is too noisy",
    "identical": "identical builds",
    "single": "head only",
    "invalid": "machine unfit",
    "error": "error",
}


_LIMITS = ("seconds", "usd", "trials")
_EARLY_ENDS = {
    "finished": "ended early: nothing more to try",
    "converged": "ended early: no task promised budget.min-gain-percent-per-minute any more",
    "target-latency": "ended early: budget.target-latency-ms is reached",
}


_SHARED = "base and head share every untuned task"


def tuning_ended(tuning: TuningSummary) -> str:
    """Returns why tuning as a whole ended."""
    is_known = tuning.exact + tuning.waiting == tuning.tasks
    if is_known and not tuning.trials and not _of_older(tuning):
        return _SHARED if tuning.waiting else "nothing to tune"
    if not tuning.trials and tuning.stopped in _LIMITS:
        return "too short for a trial" if tuning.seconds >= 1 else "no budget for a trial"
    if tuning.trials and tuning.stopped in _EARLY_ENDS:
        return _EARLY_ENDS[tuning.stopped]
    return stopped_words(tuning.stopped)


def stopped_words(stopped: str) -> str:
    """Returns an artifact's word for people; an unknown one stays as it is."""
    return STOPPED_WORDS.get(stopped, stopped)


# Sentences on what the cache had as the run began. The counts are those of `verdict.json`: a report
# has one number for one thing.


def cache_traffic(cache: CacheUse) -> str:
    """Returns the requests of this run, without a full stop."""
    price = "" if cache.usd is None else f", {money(cache.usd)}"
    requests = plural(cache.requests, "request")
    return f"{requests}, {size(cache.bytes_read)}, {duration(cache.seconds)}{price}"


def cache_words(tuning: TuningSummary, cache: CacheUse) -> str:
    """Returns the sentences, '' if no task was looked up."""
    if not tuning.tasks:
        return ""
    others = ", ".join(_other_answers(tuning, cache))
    rest = f"; of the other {tuning.tasks - tuning.exact}: {others}" if others else ""
    was = "was" if tuning.exact == 1 else "were"
    text = f"{tuning.exact} of {plural(tuning.tasks, 'task')} {was} known before"
    if older := _of_older(tuning):
        text += f", {older} of them to an older toolchain only"
    if not tuning.exact:
        why = "" if others == f"{tuning.tasks} unknown" else f": {others}"
        return f"None of {plural(tuning.tasks, 'task')} was known before{why}."
    return f"{text}{rest}."


def _other_answers(tuning: TuningSummary, cache: CacheUse) -> Iterator[str]:
    """Yields phrases on what the cache had besides exact hits."""
    if tuning.unfinished:
        yield f"{tuning.unfinished} begun by an earlier run"
    if near := tuning.transfer - tuning.unfinished:
        yield f"{near} with schedules of other shapes"
    if tuning.miss:
        yield f"{tuning.miss} unknown{_reasons(cache)}"


def _reasons(cache: CacheUse) -> str:
    """Returns the reasons of misses, '' if the tasks are just not there."""
    reasons = [f"{number} {why}" for why, number in sorted(cache.misses.items())]
    return f" ({', '.join(reasons)})" if set(cache.misses) - {"absent"} else ""


# Sentences on the runtime that each model ships with, what that saved, and what nobody measured.
# The short form counts rejected candidates instead of giving reasons. Differences are in percent:
# that comparison's times differ from base's and head's.

_TOLD_REASONS = 1


def shipped_sentences(report: Report, code: Callable[[str], str]) -> Iterator[str]:
    """Yields a sentence for each model whose head had a choice, or runs picked schedules; `code`
    marks a model's name."""
    for built in report.run.builds if report.run else ():
        if (head := _head_to_describe(built)) is not None:
            yield f"{_ships(built, code)} with {_choice(head)}{_build_text(built)}."


def shipped_in_short(report: Report, code: Callable[[str], str]) -> Iterator[str]:
    """Yields fewer sentences on the same models, if there is no room for all reasons."""
    for built in report.run.builds if report.run else ():
        if (head := _head_to_describe(built)) is not None:
            first = f"{_ships(built, code)} with {_choice(head, in_short=True)}{_build_text(built)}"
            yield ". ".join((first, *_refused_in_short(head))) + "."


def shipping_in_words(shipping: WarmedShipping) -> str:
    """Returns in one line what a model ships with, who chose it, and its error."""
    where = f"{visible(shipping.model)} on {visible(shipping.target)}"
    if shipping.reason:
        return f"{where} ships with nothing: {visible(shipping.reason, 600).rstrip('.')}."
    ships = f"{where} ships with {visible(shipping.title)}"
    chosen = ", as an earlier run chose" if shipping.is_remembered else ""
    unknown = ": the next run that builds it measures it" if shipping.has_unknown_error else ""
    errors = "; a ".join(estimates_in_words(shipping.estimates, is_drawn=shipping.is_drawn))
    trouble = "".join(f" {visible(each, 600).rstrip('.')}." for each in shipping.trouble)
    return f"{ships}{chosen}{unknown}{', with a ' if errors else ''}{errors}.{trouble}"


def _refused_in_short(build: Build) -> Iterator[str]:
    """Yields the number of rejected candidates, if their reasons are left out."""
    refused = build.choice.refused if build.choice is not None else ()
    if len(refused) <= _TOLD_REASONS:
        return
    far_off = sum(each.error is not None for each in refused)
    of_them = f", {far_off} of them by the accuracy budget" if far_off else ""
    yield f"{len(refused)} other candidates are refused{of_them}: the report has the reasons"


def _head_to_describe(built: CellBuilds) -> Build | None:
    """Returns the head if there is something to say about what it ships with."""
    if built.head is None or built.head.error:
        return None
    return built.head if built.head.choice is not None or _picked_text(built.head) else None


def _ships(built: CellBuilds, code: Callable[[str], str]) -> str:
    return f"{code(built.cell.model)} on {code(built.cell.target)} ships"


def _build_text(built: CellBuilds) -> str:
    before = built.base if built.base and not built.base.error else None
    return f"{_change_text(before, built.head)}{_picked_text(built.head)}" if built.head else ""


def _picked_text(build: Build) -> str:
    """Returns how many kernels run unmeasured schedules; only the whole model was measured with
    them."""
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
    """Returns the reasons of candidates that were not measured; in short, of a few of them."""
    is_told = not in_short or len(choice.refused) <= _TOLD_REASONS
    candidates = choice.refused if is_told else ()
    refused = [f"{each.title}: {_first_sentence(each.reason)}" for each in candidates]
    reasons = [*([_first_sentence(choice.reason)] if choice.reason else []), *refused]
    return f" ({'; '.join(reasons)})" if reasons else ""


def _first_sentence(text: str) -> str:
    """Returns the first sentence, the problem; the advice does not matter for a model that ships
    anyway."""
    return text.partition(". ")[0].rstrip(".")


def _change_text(before: Build | None, build: Build) -> str:
    if before is None or before.candidate == build.candidate:
        return ""
    return f"; the base runs with {before.title}"
