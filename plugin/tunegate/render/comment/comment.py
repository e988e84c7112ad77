"""The report as Markdown: the comment on a pull request, and the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunegate.artifacts.verdicts import Finding, Report
from tunegate.fitted_markdown import Section, fitted
from tunegate.plurals import plural
from tunegate.render.blocks import fold, markdown_table
from tunegate.render.cache_words import cache_traffic, cache_words
from tunegate.render.candidates.accuracy import accuracy_table, drawn_note
from tunegate.render.candidates.error_moves import error_moves
from tunegate.render.comment.compared_numbers import change_said, layer_total
from tunegate.render.comment.shown import ShownFindings, rest_counted, shown_findings
from tunegate.render.comment.steps import numbered_steps
from tunegate.render.comment.tables import comment_tasks_table, narrowed
from tunegate.render.comment.waiver_text import accept_title, waiver_text
from tunegate.render.cost_table import audit, audit_words, spending, spending_words
from tunegate.render.environment import facts
from tunegate.render.escape import code, code_element, prose
from tunegate.render.headline import MARKS, headline, remarks, worst_first
from tunegate.render.operators import parts, tuned_rows
from tunegate.render.policy import policy_lines, uncovered_line
from tunegate.render.shipped import shipped
from tunegate.render.tables.report_tables import (
    facts_table,
    inputs_table,
    models_table,
    operators_table,
    savings_table,
    spending_table,
)
from tunegate.render.tables.table import ReportTable
from tunegate.render.tuning_words import tuning_words
from tunegate.tuning.costs.savings import savings

SHOWN_CHECKS = 20
SHOWN_OPERATORS = 6
SHOWN_TASKS = 150
SILENT = frozenset({"pass", "new"})
"""Statuses that need no reason where there are many."""


def render(report: Report, *, limit_chars: int = 60_000) -> str:
    """The whole report in at most that many characters, without what matters least in the rest.

    A comment of more than 65,536 characters is refused.
    """
    shown = shown_findings(report.verdict)
    sections = (
        Section(0, f"### {MARKS[report.verdict.status]} {headline(report, code, prose)}"),
        Section(1, _policy(report)),
        Section(2, _checks(report, shown)),
        *(Section(5, each) for each in _slowdowns(report)),
        Section(3, _steps(report)),
        Section(4, _waiver(report)),
        Section(4, _accuracy(report)),
        Section(6, _warnings(report)),
        Section(7, _tuning(report)),
        Section(8, _more_checks(shown.rest)),
        Section(8, _shipped(report)),
        Section(9, _cache(report)),
        Section(11, _tasks(report)),
        Section(12, _inputs(report)),
        Section(13, _spending(report)),
        Section(10, _about(report)),
    )
    return fitted([section for section in sections if section.text], limit_chars)


def _policy(report: Report) -> str:
    lines = [f"- {line}" for line in policy_lines(report.verdict, code)]
    return "\n".join(["#### Changes to the rules of this gate", "", *lines]) if lines else ""


def _checks(report: Report, shown: ShownFindings) -> str:
    """The table, what it leaves out, and what numbers do not say."""
    table = markdown_table(_models(shown.rows)) if shown.rows else ""
    said = change_said(shown.rows)
    counted = rest_counted(report, shown.rest)
    told = (table, said, counted, _remarks(report, shown.rows))
    return "\n\n".join(filter(None, told))


def _tuning(report: Report) -> str:
    """Returns the line on tuning, '' for a change that touches no model: its rules alone
    changed."""
    if not (report.verdict.findings or report.verdict.tuning.tasks):
        return ""
    return f"Tuning: {prose(tuning_words(report.verdict.tuning))}."


def _models(findings: Sequence[Finding]) -> ReportTable:
    return narrowed(models_table(findings), "Energy")


def _remarks(report: Report, rows: tuple[Finding, ...]) -> str:
    """Returns the remarks of the findings, in the gate's words. The headline has said it where one
    check is all there is. What is said of a model on several targets is said once."""
    told = [(each, remarks(each)) for each in rows]
    if len(report.verdict.findings) == 1:
        return "".join(
            f"Also: {prose(said)}." for each, said in told if said and each.change_percent
        )
    targets: dict[tuple[str, str], list[str]] = {}
    for each, said in told:
        if said and each.status not in SILENT:
            targets.setdefault((each.model, said), []).append(code(each.target))
    return "\n".join(
        f"- {code(model)} on {', '.join(its)}: {prose(said)}."
        for (model, said), its in targets.items()
    )


def _slowdowns(report: Report) -> Iterator[str]:
    """The worst one, and the others in folds."""
    found = worst_first(report.verdict)
    for at, finding in enumerate(each for each in found if _is_explained(each)):
        name = code_element if at else code
        title = f"What got slower in {name(finding.model)} on {name(finding.target)}"
        table = _operators(finding)
        yield fold(title, table) if at else f"#### {title}\n\n{table}"


def _is_explained(finding: Finding) -> bool:
    return finding.status in {"fail", "waived"} and bool(finding.differences)


def _operators(finding: Finding) -> str:
    slower = [part for part in parts(finding.differences) if part.difference_ms > 0]
    shown = slower[:SHOWN_OPERATORS]
    rest = len(slower) - len(shown)
    more = f"{plural(rest, 'more layer')} got slower by less." if rest > 0 else ""
    told = " ".join(filter(None, (more, layer_total(finding, slower))))
    return f"{markdown_table(operators_table(shown))}\n\n{told}"


def _steps(report: Report) -> str:
    if not report.next_steps and report.waiver_offer is None:
        return ""
    first, others = numbered_steps(report.next_steps)
    more = fold("More steps", others) if others else ""
    return "\n\n".join(filter(None, ("#### What to do", first, more)))


def _waiver(report: Report) -> str:
    """Folded: most who read the comment look for what to mend, and the block is long."""
    offer = report.waiver_offer
    return fold(accept_title(offer), waiver_text(offer)) if offer else ""


def _accuracy(report: Report) -> str:
    findings = worst_first(report.verdict)[:SHOWN_CHECKS]
    whole = accuracy_table(findings)
    table = narrowed(whole, "Tell nothing", "Inputs")
    if not table.rows:
        return ""
    moves = [move for each in worst_first(report.verdict) for move in error_moves(each, code)]
    told = [f"> ⚠️ {move}.\n" for move in moves[:SHOWN_CHECKS]]
    note = drawn_note(findings)
    below = [f"\n{note}"] if note else []
    return "\n".join(["#### Accuracy\n", *told, markdown_table(table), *below])


def _warnings(report: Report) -> str:
    uncovered = uncovered_line(report.changes.uncovered, code)
    return "\n\n".join(filter(None, (_warning_lines(report), uncovered)))


def _warning_lines(report: Report) -> str:
    return "\n".join(f"> ⚠️ {prose(warning)}\n>" for warning in report.warnings).removesuffix("\n>")


def _more_checks(rest: tuple[Finding, ...]) -> str:
    if not rest:
        return ""
    return fold(plural(len(rest), "more check"), markdown_table(_models(rest)))


def _shipped(report: Report) -> str:
    sentences = list(shipped(report, code))
    if not sentences:
        return ""
    rest = len(sentences) - SHOWN_CHECKS
    more = [f"- … and {rest} more."] if rest > 0 else []
    return fold("What ships", "\n".join([*(f"- {s}" for s in sentences[:SHOWN_CHECKS]), *more]))


def _cache(report: Report) -> str:
    cache = report.cache
    if cache is None:
        return ""
    saved = report.plan.saved if report.plan else None
    told = prose(cache_words(report.verdict.tuning, cache, saved))
    where = (
        f"{code(cache.location)}, zone {code(cache.zone)}, {cache.mode}: {cache_traffic(cache)}."
    )
    notes = "\n".join(f"- {prose(note)}" for note in cache.notes)
    return fold("Cache", "\n\n".join(filter(None, (told, where, notes))))


def _tasks(report: Report) -> str:
    rows = tuned_rows(report)
    if not rows:
        return ""
    shown = rows[:SHOWN_TASKS]
    rest = len(rows) - len(shown)
    more = f"\n\n… and {plural(rest, 'more task')}." if rest > 0 else ""
    return fold(plural(len(rows), "task"), markdown_table(comment_tasks_table(shown)) + more)


def _inputs(report: Report) -> str:
    """Those of one model are the same on every target."""
    once = {finding.model: finding for finding in report.verdict.findings if finding.inputs}
    shown, count = [*once.values()][:SHOWN_CHECKS], len(once)
    if not shown:
        return ""
    rest = count - len(shown)
    more = f"\n\n… and those of {plural(rest, 'more model')}." if rest > 0 else ""
    return fold("Inputs", markdown_table(inputs_table(shown)) + more)


def _spending(report: Report) -> str:
    rows = spending(report.outcomes)
    if not rows:
        return ""
    found = audit(report.outcomes)
    sentences = (spending_words(report.outcomes), audit_words(found) if found else "")
    told = "".join(f"\n\n{each}" for each in sentences if each)
    table = narrowed(spending_table(rows), "Share")
    saved = savings(report.plan, report.outcomes)
    more = f"\n\n{markdown_table(savings_table(saved))}" if saved else ""
    return fold("Where the tuning time went", markdown_table(table) + told + more)


def _about(report: Report) -> str:
    launches = sum(finding.launches for finding in report.verdict.findings)
    table = markdown_table(facts_table(facts(report)))
    told = f"\n\n{_what_is_measured(report)}" if launches else ""
    return fold("Revisions, machine, and what the numbers are", table + told)


def _what_is_measured(report: Report) -> str:
    layers = [layer for each in report.verdict.findings for layer in each.differences]
    by_tuning = any(layer.is_alone for layer in layers)
    return (
        "Base and head are medians of one inference, measured in turns on this machine, in this "
        "run. A paired launch compares a process of the base with one of the head, in turn, so "
        "that what slows the machine slows both. Layers are timed inside the model, by a profile "
        f"of each build{' where there is one, else alone, by tuning,' if by_tuning else ','} with "
        "all calls of one inference; they do not add up to it exactly. Tasks are timed alone, by "
        "tuning, one call each."
    )
