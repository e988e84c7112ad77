"""The report as Markdown: the comment on a pull request, and the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tunegate.artifacts.changes import path_of
from tunegate.artifacts.verdicts import Finding, Named, NextStep, Report, Verdict
from tunegate.decide.decision import FAIL_ERROR, PASS_ERROR
from tunegate.report import report_tables
from tunegate.report.accuracy import accuracy_table, drawn_note, error_moves
from tunegate.report.cost_table import audit, audit_words, savings, spending, spending_words
from tunegate.report.environment import facts
from tunegate.report.escape import code, code_element, prose
from tunegate.report.headline import (
    MARKS,
    headline,
    policy_lines,
    remarks,
    uncovered_line,
    worst_first,
)
from tunegate.report.markdown import Section, fit_sections, fold, markdown_table
from tunegate.report.operators import Part, TunedRow, parts, tuned_rows
from tunegate.report.sentences import (
    cache_traffic,
    cache_words,
    shipped_sentences,
    stopped_words,
    tuning_words,
)
from tunegate.report.table import Column, Identifier, ReportTable, number_column, text_column
from tunegate.report.units import NONE, difference_ms
from tunegate.report.waiver_text import accept_title, waiver_text
from tunegate.wording import milliseconds, plural

SHOWN_CHECKS = 20
SHOWN_OPERATORS = 6
SHOWN_TASKS = 150
_MAX_NAMES = 4
SILENT = frozenset({"pass", "new"})
"""Statuses that need no reason when there are many."""


def render(report: Report, *, limit_chars: int = 60_000) -> str:
    """Returns the whole report in at most `limit_chars` characters, leaving out the least
    important.

    A comment of more than 65,536 characters is refused.
    """
    shown = shown_findings(report.verdict)
    sections = (
        Section(0, f"### {MARKS[report.verdict.status]} {headline(report, code, prose)}"),
        Section(1, _policy(report)),
        Section(2, _checks(report, shown)),
        *(Section(5, each) for each in _slowdowns(shown.rows)),
        *(Section(6, each) for each in _changed_layers(report, shown.rows)),
        Section(3, _steps(report)),
        Section(4, _waiver(report)),
        Section(4, _accuracy(report)),
        Section(6, _warnings(report)),
        Section(7, _tuning(report)),
        Section(8, _more_checks(shown.rest)),
        Section(8, _what_ships(report)),
        Section(9, _cache(report)),
        Section(11, _tasks(report)),
        Section(12, _inputs(report)),
        Section(13, _spending(report)),
        Section(10, _about(report)),
    )
    return fit_sections([section for section in sections if section.text], limit_chars)


def _policy(report: Report) -> str:
    lines = [f"- {line}" for line in policy_lines(report.verdict, code)]
    return "\n".join(["#### Changes to the rules of this gate", "", *lines]) if lines else ""


def _checks(report: Report, shown: ShownFindings) -> str:
    """Returns the table, what it leaves out, and what its numbers do not say."""
    table = markdown_table(_models(shown.rows)) if shown.rows else ""
    bounds_line = change_note(shown.rows)
    counted = rest_sentence(report, shown.rest)
    sections = (table, bounds_line, counted, _remarks(report, shown.rows))
    return "\n\n".join(filter(None, sections))


def _tuning(report: Report) -> str:
    """Returns the line on tuning, '' for a change that touches only rules."""
    if not (report.verdict.findings or report.verdict.tuning.tasks):
        return ""
    return f"Tuning: {prose(tuning_words(report.verdict.tuning))}."


def _models(findings: Sequence[Finding]) -> ReportTable:
    return narrow_table(report_tables.models_table(findings), "Energy", "Loading")


def _remarks(report: Report, rows: tuple[Finding, ...]) -> str:
    """Returns the findings' remarks in the gate's words, '' if the headline has already said a
    single check's. A remark on a model with several targets appears once."""
    remarks_of_rows = [(row, remarks(row)) for row in rows]
    if len(report.verdict.findings) == 1:
        return "".join(
            f"Also: {prose(remark)}."
            for each, remark in remarks_of_rows
            if remark and each.change_percent
        )
    targets: dict[tuple[str, str], list[str]] = {}
    for each, remark in remarks_of_rows:
        if remark and each.status not in SILENT:
            targets.setdefault((each.model, remark), []).append(code(each.target))
    return "\n".join(
        f"- {code(model)} on {', '.join(its)}: {prose(remark)}."
        for (model, remark), its in targets.items()
    )


def _slowdowns(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields the first slowdown of these findings, and the others in folds."""
    for at, finding in enumerate(each for each in findings if _is_explained(each)):
        name = code_element if at else code
        title = f"What got slower in {name(finding.model)} on {name(finding.target)}"
        table = _operators(finding)
        yield fold(title, table) if at else f"#### {title}\n\n{table}"


def _changed_layers(report: Report, findings: Sequence[Finding]) -> Iterator[str]:
    """Yields the changed layers of each model that did not pass, one line per layer, of these
    findings. Profiles of one model share them."""
    paths = {path_of(each.model) for each in findings if each.status not in SILENT}
    for change in report.changes.models:
        path = path_of(change.path)
        if change.layers and path in paths:
            paths.remove(path)
            lines = [f"- {code(layer.name)}: {prose(layer.change)}" for layer in change.layers]
            if change.more_layers:
                lines.append(f"- … and {plural(change.more_layers, 'more layer')}.")
            yield f"#### What changed in {code(path)}\n\n" + "\n".join(lines)


def _is_explained(finding: Finding) -> bool:
    return finding.status in {"fail", "waived"} and bool(finding.differences)


def _operators(finding: Finding) -> str:
    slower = [part for part in parts(finding.differences) if part.difference_ms > 0]
    rows = slower[:SHOWN_OPERATORS]
    rest = len(slower) - len(rows)
    more = f"{plural(rest, 'more layer')} got slower by less." if rest > 0 else ""
    notes = " ".join(filter(None, (more, layer_total(finding, slower))))
    return f"{markdown_table(report_tables.operators_table(rows))}\n\n{notes}"


def _steps(report: Report) -> str:
    if not report.next_steps and report.waiver_offer is None:
        return ""
    first, others = numbered_steps(report.next_steps)
    more = fold("More steps", others) if others else ""
    return "\n\n".join(filter(None, ("#### What to do", first, more)))


def _waiver(report: Report) -> str:
    """Returns the waiver folded: the block is long, and most readers look for what to mend."""
    offer = report.waiver_offer
    return fold(accept_title(offer), waiver_text(offer)) if offer else ""


def _accuracy(report: Report) -> str:
    findings = worst_first(report.verdict)[:SHOWN_CHECKS]
    whole = accuracy_table(findings)
    table = narrow_table(whole, "Tell nothing", "Inputs")
    if not table.rows:
        return ""
    moves = [move for each in worst_first(report.verdict) for move in error_moves(each, code)]
    warnings = [f"> ⚠️ {move}.\n" for move in moves[:SHOWN_CHECKS]]
    note = drawn_note(findings)
    below = [f"\n{note}"] if note else []
    return "\n".join(["#### Accuracy\n", *warnings, markdown_table(table), *below])


def _warnings(report: Report) -> str:
    uncovered = uncovered_line(report.changes.uncovered, code)
    return "\n\n".join(filter(None, (_warning_lines(report), uncovered)))


def _warning_lines(report: Report) -> str:
    return "\n".join(f"> ⚠️ {prose(warning)}\n>" for warning in report.warnings).removesuffix("\n>")


def _more_checks(unlisted: tuple[Finding, ...]) -> str:
    if not unlisted:
        return ""
    return fold(plural(len(unlisted), "more check"), markdown_table(_models(unlisted)))


def _what_ships(report: Report) -> str:
    sentences = list(shipped_sentences(report, code))
    if not sentences:
        return ""
    rest = len(sentences) - SHOWN_CHECKS
    more = [f"- … and {rest} more."] if rest > 0 else []
    return fold("What ships", "\n".join([*(f"- {s}" for s in sentences[:SHOWN_CHECKS]), *more]))


def _cache(report: Report) -> str:
    cache = report.cache
    if cache is None:
        return ""
    text = prose(cache_words(report.verdict.tuning, cache))
    where = (
        f"{code(cache.location)}, zone {code(cache.zone)}, {cache.mode}: {cache_traffic(cache)}."
    )
    notes = "\n".join(f"- {prose(note)}" for note in cache.notes)
    return fold("Cache", "\n\n".join(filter(None, (text, where, notes))))


def _tasks(report: Report) -> str:
    rows = tuned_rows(report)
    if not rows:
        return ""
    merged = merge_alike(rows)
    first_rows = merged[:SHOWN_TASKS]
    rest = len(merged) - len(first_rows)
    more = f"\n\n… and {plural(rest, 'more row')}." if rest > 0 else ""
    return fold(plural(len(rows), "task"), markdown_table(comment_tasks_table(first_rows)) + more)


def _inputs(report: Report) -> str:
    """Returns the table of inputs; a model's are the same on every target."""
    once = {finding.model: finding for finding in report.verdict.findings if finding.inputs}
    inputs, count = [*once.values()][:SHOWN_CHECKS], len(once)
    if not inputs:
        return ""
    rest = count - len(inputs)
    more = f"\n\n… and those of {plural(rest, 'more model')}." if rest > 0 else ""
    return fold("Inputs", markdown_table(report_tables.inputs_table(inputs)) + more)


def _spending(report: Report) -> str:
    rows = spending(report.outcomes)
    if not rows:
        return ""
    spent = audit(report.outcomes)
    sentences = (spending_words(report.outcomes), audit_words(spent) if spent else "")
    below = "".join(f"\n\n{sentence}" for sentence in sentences if sentence)
    table = narrow_table(report_tables.spending_table(rows), "Share")
    saved = savings(report.plan, report.outcomes)
    more = f"\n\n{markdown_table(report_tables.savings_table(saved))}" if saved else ""
    return fold("Where the tuning time went", markdown_table(table) + below + more)


def _about(report: Report) -> str:
    launches = sum(finding.launches for finding in report.verdict.findings)
    table = markdown_table(report_tables.facts_table(facts(report)))
    below = f"\n\n{_what_is_measured(report)}" if launches else ""
    return fold("Revisions, machine, and what the numbers are", table + below)


def _what_is_measured(report: Report) -> str:
    layers = [layer for finding in report.verdict.findings for layer in finding.differences]
    by_tuning = any(layer.is_alone for layer in layers)
    return (
        "Base and head are medians of one inference, measured alternately on one machine in this "
        "run. A paired launch runs a process of each, so noise of the machine slows both. Layers "
        "are timed inside the model, by a profile of each build"
        f"{' where there is one, else alone, by tuning,' if by_tuning else ','} over all calls of "
        "one inference; they do not add up to it exactly. Tasks are timed alone, by tuning, one "
        "call each."
    )


# The next steps as Markdown: names as code, and the first steps before the fold.

_OPEN = 4
_SHOWN = 30


def numbered_steps(steps: Sequence[NextStep]) -> tuple[str, str]:
    """Returns two parts of one numbered list: what is always visible, and the steps after the first
    few ('' instead of a single one)."""
    lines = [f"{number}. {step_markdown(step)}" for number, step in enumerate(steps, start=1)]
    if len(lines) <= _OPEN + 1:
        return "\n".join(lines), ""
    rest = len(lines) - _SHOWN
    more = [f"\n… and {rest} more."] if rest > 0 else []
    return "\n".join(lines[:_OPEN]), "\n".join([*lines[_OPEN:_SHOWN], *more])


def step_markdown(step: NextStep) -> str:
    """Returns the sentence with its names as code."""
    return "".join(
        code(each.text) if isinstance(each, Named) else _between(each, is_first=at == 0)
        for at, each in enumerate(step.pieces)
    )


def _between(piece: str, *, is_first: bool) -> str:
    """Returns the text with its spaces. Behind a name it continues a line, as behind a letter."""
    drawn = prose(piece) if is_first else prose(f"x{piece}")[1:]
    return f"{drawn} " if piece.endswith(" ") else drawn


# The findings that the comment shows, and the count of the others.

_FEW = 5
"""The number of checks to show whatever their result."""
_MAX_SHOWN = 20


class ShownFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`rows` are the findings to show, the worst first; `rest` is only counted."""

    rows: tuple[Finding, ...]
    rest: tuple[Finding, ...]


def shown_findings(verdict: Verdict) -> ShownFindings:
    """Returns all findings if they are few, else those that did not pass or whose latency moved."""
    worst = worst_first(verdict)
    first_rows = [each for each in worst if each.status != "pass" or _is_moved(each)]
    if len(worst) <= _FEW or not first_rows:
        first_rows = [*worst[:_FEW]]
    rows = tuple(first_rows[:_MAX_SHOWN])
    return ShownFindings(rows=rows, rest=tuple(each for each in worst if each not in rows))


def rest_sentence(report: Report, unlisted: tuple[Finding, ...]) -> str:
    """Returns a sentence on what the table leaves out, and on models that the change does not
    touch."""
    passed = sum(each.status == "pass" for each in unlisted)
    unchanged = len(report.changes.unchanged)
    phrases = [
        f"{plural(passed, 'more check')} passed" if passed else "",
        f"{plural(len(unlisted) - passed, 'more check')} did not pass"
        if len(unlisted) > passed
        else "",
        _count_untouched(unchanged) if unchanged and report.verdict.findings else "",
    ]
    return " ".join(f"{phrase}." for phrase in phrases if phrase)


def _count_untouched(count: int) -> str:
    """Returns how many configured models the change does not touch; those are not measured."""
    return f"{plural(count, 'configured model')} {'is' if count == 1 else 'are'} not touched"


def _is_moved(finding: Finding) -> bool:
    return finding.change_percent is not None and finding.change_percent.excludes_zero


# The tables of the comment. A comment is 780 pixels wide: five columns at most.

MAX_COLUMNS = 5


def comment_tasks_table(rows: Sequence[TunedRow]) -> ReportTable:
    """Returns the table of tuning by task; times are per call."""
    columns: tuple[Column[TunedRow], ...] = (
        text_column("Task", lambda row: Identifier(row.label)),
        text_column("Schedule", lambda row: row.source),
        number_column("Trials", lambda row: str(row.trials)),
        number_column("Call alone", _one_call),
        text_column("Ended", lambda row: stopped_words(row.stopped)),
    )
    return ReportTable(columns, rows)


def merge_alike(rows: Sequence[TunedRow]) -> list[TunedRow]:
    """Returns one row for all tasks of which the table says the same, with some of their names."""
    groups: dict[object, list[TunedRow]] = {}
    for row in rows:
        key = (row.source, row.trials, _one_call(row), row.stopped)
        groups.setdefault(key, []).append(row)
    return [_merge(group) if len(group) > 1 else group[0] for group in groups.values()]


def _merge(rows: Sequence[TunedRow]) -> TunedRow:
    names = list(dict.fromkeys(row.label for row in rows))
    rest = len(names) - _MAX_NAMES
    more = f" and {rest} more" if rest > 0 else ""
    label = f"{', '.join(names[:_MAX_NAMES])}{more} ({len(rows)} tasks)"
    return msgspec.structs.replace(rows[0], name=label, side=None)


def narrow_table(table: ReportTable, *titles: str) -> ReportTable:
    """Returns the table without as many of these columns, in this order, as do not fit."""
    for title in titles:
        if sum(not column.under for column in table.columns) <= MAX_COLUMNS:
            break
        table = table.without(title)
    return table


def _one_call(row: TunedRow) -> str:
    """Returns both times if tuning made a difference."""
    if row.best_ms is None or row.before_ms is None:
        return milliseconds(row.best_ms) if row.best_ms is not None else NONE
    after = milliseconds(row.best_ms)
    before = milliseconds(row.before_ms)
    return after if before == after else f"{before} → {after}"


# Notes on how the comment's numbers relate, for readers who divide or add them.

_APART = 0.2
"""The share of difference from which the layers visibly do not add up to the model."""


CHANGE_NOTE = "Change compares paired launches, so it is not Head / Base"


def change_note(findings: Sequence[Finding], *, with_bounds: bool = True) -> str:
    """Returns what the change beside two medians means, and the confidence of its bounds; '' if no
    row has all three."""
    if not any(
        finding.change_percent and finding.base_ms and finding.head_ms for finding in findings
    ):
        return ""
    low, high = (f"{100 * (1 - error):.3g}%" for error in (FAIL_ERROR, PASS_ERROR))
    below = (
        f". Below it are its bounds: the lower one with {low} confidence, the upper one with {high}"
    )
    return f"{CHANGE_NOTE}{below if with_bounds else ''}."


def layer_total(finding: Finding, slower: Sequence[Part]) -> str:
    """Returns the total that the layers' shares refer to, beside the loss of the whole model."""
    if not slower:
        return ""
    total_ms = sum(part.difference_ms for part in slower)
    shares = f"Shares are of {difference_ms(total_ms)}, the sum of these layers. "
    text = shares if len(slower) > 1 else ""
    if finding.base_ms is not None and finding.head_ms is not None:
        whole_ms = finding.head_ms - finding.base_ms
        is_apart = abs(total_ms - whole_ms) > _APART * abs(whole_ms)
        means = "each alone, by tuning" if any(part.is_alone for part in slower) else "in a profile"
        why = f"; layers were timed apart from it, {means}" if is_apart else ""
        text += f"The whole model: {difference_ms(whole_ms)}{why}."
    return text.strip()
