"""The report as Markdown: the comment on a pull request, and the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator

from tunegate.artifacts.cost import Cost
from tunegate.artifacts.tasks import CacheUse
from tunegate.artifacts.verdicts import Finding, Report
from tunegate.fitted_markdown import Section, fitted
from tunegate.render.blocks import fold, markdown_table
from tunegate.render.candidates.accuracy import accuracy_table
from tunegate.render.candidates.error_moves import error_moves
from tunegate.render.cost_table import audit, spending
from tunegate.render.environment import facts
from tunegate.render.escape import code, prose
from tunegate.render.headline import MARKS, headline, worst_first
from tunegate.render.operators import parts, tuned_rows
from tunegate.render.policy import policy_lines, uncovered_line
from tunegate.render.shipped import shipped
from tunegate.render.tables.report_tables import (
    facts_table,
    inputs_table,
    models_table,
    operators_table,
    spending_table,
    tasks_table,
    tuning_table,
)
from tunegate.render.units import (
    duration,
    energy,
    money,
    plural,
    size,
)

SHOWN_CHECKS = 20
SHOWN_OPERATORS = 6
SHOWN_TASKS = 150
SHOWN_STEPS = 8


def render(report: Report, *, limit_chars: int = 60_000) -> str:
    """The whole report in at most that many characters, without what matters least in the rest.

    A comment of more than 65,536 characters is refused.
    """
    sections = (
        Section(0, _verdict(report)),
        Section(1, _policy(report)),
        Section(2, _models(report)),
        Section(4, _shipped(report)),
        Section(4, _accuracy(report)),
        *(Section(5, each) for each in _slowdowns(report)),
        Section(3, _steps(report)),
        Section(8, _tuning(report)),
        Section(6, _warnings(report)),
        Section(10, _tasks(report)),
        Section(11, _inputs(report)),
        Section(12, _spending(report)),
        Section(7, _more_checks(report)),
        Section(9, _about(report)),
    )
    return fitted([section for section in sections if section.text], limit_chars)


def _verdict(report: Report) -> str:
    return f"### {MARKS[report.verdict.status]} {headline(report, code, prose)}"


def _policy(report: Report) -> str:
    lines = [f"- {line}" for line in policy_lines(report.verdict, code)]
    return "\n".join(["#### Changes to the rules of this gate", "", *lines]) if lines else ""


def _models(report: Report) -> str:
    findings = worst_first(report.verdict)[:SHOWN_CHECKS]
    return _findings_table(report, findings) if findings else ""


def _shipped(report: Report) -> str:
    sentences = list(shipped(report, code))
    rest = len(sentences) - SHOWN_CHECKS
    shown = "\n".join(f"- {sentence}" for sentence in sentences[:SHOWN_CHECKS])
    return shown + (f"\n- … and {rest} more." if rest > 0 else "")


def _accuracy(report: Report) -> str:
    table = accuracy_table(worst_first(report.verdict)[:SHOWN_CHECKS])
    if not table.rows:
        return ""
    moves = [move for each in worst_first(report.verdict) for move in error_moves(each, code)]
    told = [f"> ⚠️ {move}.\n" for move in moves[:SHOWN_CHECKS]]
    return "\n".join(["#### Accuracy\n", *told, markdown_table(table)])


def _findings_table(report: Report, findings: tuple[Finding, ...]) -> str:
    return markdown_table(models_table(findings, report.verdict))


def _slowdowns(report: Report) -> Iterator[str]:
    for finding in worst_first(report.verdict):
        if finding.status == "fail" and finding.differences:
            yield _operators(finding)


def _operators(finding: Finding) -> str:
    slower = [part for part in parts(finding.differences) if part.difference_ms > 0]
    shown = slower[:SHOWN_OPERATORS]
    title = f"#### What is slower in {code(finding.model)} on {code(finding.target)}"
    rest = len(slower) - len(shown)
    more = f"\n\n{plural(rest, 'more operator')} slower by less." if rest > 0 else ""
    return f"{title}\n\n{markdown_table(operators_table(shown))}{more}"


def _steps(report: Report) -> str:
    if not report.next_steps:
        return ""
    steps = "\n".join(f"- {prose(step)}" for step in report.next_steps[:SHOWN_STEPS])
    rest = len(report.next_steps) - SHOWN_STEPS
    return f"#### What to do next\n\n{steps}" + (f"\n- … and {rest} more." if rest > 0 else "")


def _tuning(report: Report) -> str:
    saved = report.plan.saved if report.plan else None
    cache = f"\n\n{_cache(report.cache, saved)}" if report.cache else ""
    return f"#### Tuning\n\n{markdown_table(tuning_table(report.verdict.tuning))}{cache}"


def _cache(cache: CacheUse, saved: Cost | None) -> str:
    misses = ", ".join(f"{number} {prose(why)}" for why, number in sorted(cache.misses.items()))
    told = f" ({misses})" if misses else ""
    line = (
        f"Cache {code(cache.location)}, zone {code(cache.zone)}, {cache.mode}: "
        f"{cache.exact} exact, {cache.transfer} to transfer from, "
        f"{plural(sum(cache.misses.values()), 'miss', 'misses')}{told}; "
        f"{plural(cache.requests, 'request')}, {size(cache.bytes_read)}, {duration(cache.seconds)}"
        f"{'' if cache.usd is None else f', {money(cache.usd)}'}.{_saved(saved)}"
    )
    return "\n".join([line, *(f"- {prose(note)}" for note in cache.notes)])


def _saved(saved: Cost | None) -> str:
    if saved is None or saved.seconds < 1:
        return ""
    known = [] if saved.usd is None else [money(saved.usd)]
    known += [] if saved.joules is None else [energy(saved.joules, saved.energy_source)]
    price = f" ({', '.join(known)})" if known else ""
    return f" Without its exact hits about {duration(saved.seconds)} more tuning{price}."


def _warnings(report: Report) -> str:
    uncovered = uncovered_line(report.changes.uncovered, code)
    return "\n\n".join(filter(None, (_warning_lines(report), uncovered)))


def _warning_lines(report: Report) -> str:
    return "\n".join(f"> ⚠️ {prose(warning)}\n>" for warning in report.warnings).removesuffix("\n>")


def _tasks(report: Report) -> str:
    rows = tuned_rows(report)
    if not rows:
        return ""
    shown = rows[:SHOWN_TASKS]
    rest = len(rows) - len(shown)
    more = f"\n\n… and {plural(rest, 'more task')}." if rest > 0 else ""
    return fold(
        f"Tasks ({len(rows)})", markdown_table(tasks_table(shown).without("Target", "Calls")) + more
    )


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
    return fold("Where the tuning time went", markdown_table(spending_table(rows)) + _audit(report))


def _audit(report: Report) -> str:
    found = audit(report.outcomes)
    if found is None:
        return ""
    return (
        f"\n\nOf {plural(found.audited, 'candidate')} that the filter had rejected and that "
        f"{'was' if found.audited == 1 else 'were'} measured all the same, "
        f"{found.wrong} came within 2% of the best."
    )


def _more_checks(report: Report) -> str:
    rest = worst_first(report.verdict)[SHOWN_CHECKS:]
    return fold(f"{len(rest)} more checks", _findings_table(report, rest)) if rest else ""


def _about(report: Report) -> str:
    return fold("Revisions and machine", markdown_table(facts_table(facts(report))))
