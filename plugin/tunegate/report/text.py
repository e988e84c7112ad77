"""The report for a terminal or a log: the result that a person waits for at the end of a run."""

import io
from functools import partial
from typing import assert_never

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from tunegate.artifacts.verdicts import Finding, Report, Status, WaiverOffer
from tunegate.report.accuracy import error_moves, errors_in_words
from tunegate.report.comment import change_note
from tunegate.report.environment import unchanged_names
from tunegate.report.escape import visible
from tunegate.report.headline import (
    STATUS_WORDS,
    headline,
    policy_lines,
    reason,
    uncovered_line,
    worst_first,
)
from tunegate.report.operators import parts
from tunegate.report.report_tables import models_table
from tunegate.report.sentences import shipped_in_short, tuning_words
from tunegate.report.table import CellContent, ChangeInterval, Identifier, SignedTime, StatusWord
from tunegate.report.units import difference_ms, percent, share
from tunegate.report.waiver_text import accept_title, waiver_advice, waiver_yaml
from tunegate.wording import plural

COLOURS: dict[Status, str] = {
    "pass": "green",
    "fail": "red",
    "inconclusive": "yellow",
    "new": "blue",
    "error": "red",
    "invalid-env": "yellow",
    "no-baseline": "yellow",
    "waived": "blue",
}
UNDECIDABLE: frozenset[Status] = frozenset({"error", "no-baseline"})
"""Statuses that somebody has to repair, whichever model it is."""
QUALIFIED: frozenset[Status] = frozenset({"fail", "waived"})
"""Statuses to which a waiver's remarks apply."""
TERMINAL_CHECKS = 30
TERMINAL_OPERATORS = 5
TERMINAL_UNTOUCHED = 5
TERMINAL_WAIVERS = 3
_prose = partial(visible, limit=600)
"""A reason has room for two commands to paste: a head and its base may each lack an object."""


def render(report: Report, *, width: int = 100, colour: bool = False) -> str:
    """Returns the report in lines of at most `width` characters; `colour` for a terminal."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        emoji=False,
    )
    status = report.verdict.status
    console.print(Text(headline(report, visible, _prose), style=f"bold {COLOURS[status]}"))
    for line in policy_lines(report.verdict, visible):
        console.print(_indent(f"→ {line}"))
    if report.verdict.findings:
        console.print(_checks(report))
        _print_change_said(console, report)
    for finding in worst_first(report.verdict)[:TERMINAL_CHECKS]:
        _print_more(console, finding, report)
    for sentence in list(shipped_in_short(report, visible))[:TERMINAL_CHECKS]:
        console.print(_indent(sentence))
    if report.verdict.findings or report.verdict.tuning.tasks:
        console.print(_indent(f"Tuning: {tuning_words(report.verdict.tuning)}."))
    if report.changes.unchanged:
        untouched = _prose(unchanged_names(report, TERMINAL_UNTOUCHED))
        console.print(_indent(f"Not touched: {untouched}."))
    uncovered = uncovered_line(report.changes.uncovered, visible)
    if uncovered:
        console.print(_indent(uncovered))
    _print_what_to_do(console, report)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _print_change_said(console: Console, report: Report) -> None:
    """Prints what the table's change means; its bounds have no room there."""
    findings = worst_first(report.verdict)[:TERMINAL_CHECKS]
    if line := change_note(findings, with_bounds=False):
        console.print(_indent(line))


def _print_what_to_do(console: Console, report: Report) -> None:
    for line in (*report.warnings, *(next_step.text for next_step in report.next_steps)):
        console.print(_indent(f"→ {_prose(line)}"))
    if report.waiver_offer:
        _print_waiver(console, report.waiver_offer)


def _print_waiver(console: Console, offer: WaiverOffer) -> None:
    """Prints a block to paste: no line is indented or broken."""
    if len(offer.waivers) > TERMINAL_WAIVERS:
        place = f"{len(offer.waivers)} waivers to paste are in report.md, in the fold "
        console.print(_indent(f"→ {place}“{accept_title(offer)}”."))
        return
    console.print(_indent(f"→ {waiver_advice(offer)}"))
    console.print(Text(waiver_yaml(offer)), soft_wrap=True)


def _print_more(console: Console, finding: Finding, report: Report) -> None:
    """Prints what the table has no room for."""
    for move in error_moves(finding, visible):
        console.print(_indent(f"→ {move}"))
    if finding.status in QUALIFIED:
        _print_operators(console, finding)
    where = f"{visible(finding.model, 60)} on {visible(finding.target, 24)}"
    for error in errors_in_words(finding):
        console.print(_indent(f"{where}: {visible(error, 200)}"))
    if finding.status in UNDECIDABLE:
        console.print(_indent(f"{where}: {_prose(reason(finding, report.verdict))}"))
    elif finding.status in QUALIFIED and finding.remarks:
        console.print(_indent(f"{where}: {_prose(finding.remarks)}"))


def _checks(report: Report) -> RichTable:
    findings = worst_first(report.verdict)[:TERMINAL_CHECKS]
    table = models_table(findings)
    drawn = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    for column in table.columns:
        if column.is_number:
            drawn.add_column(column.title, justify="right", no_wrap=True)
        else:
            drawn.add_column(column.title, overflow="fold")
    for row in table.cells():
        drawn.add_row(*map(_cell, row))
    rest = len(report.verdict.findings) - TERMINAL_CHECKS
    if rest > 0:
        drawn.add_row("", f"… and {plural(rest, 'more check')}")
    return drawn


def _cell(cell: CellContent) -> Text:
    match cell:
        case Identifier(text=text):
            return Text(visible(text, 60))
        case StatusWord(status=status):
            return Text(STATUS_WORDS[status], style=COLOURS[status])
        case ChangeInterval(interval=found):
            return Text(percent(found.center if found else None))
        case SignedTime():
            return Text(cell.text)
        case str() as text:
            return Text(visible(text))
        case _ as never:
            assert_never(never)


def _print_operators(console: Console, finding: Finding) -> None:
    slower = [part for part in parts(finding.differences) if part.difference_ms > 0]
    if not slower:
        return
    name = visible(finding.model, 60)
    where = f"{name} on {visible(finding.target, 24)}"
    console.print(Text(f"  Slower layers of {where}, with their share of the sum:"))
    for part in slower[:TERMINAL_OPERATORS]:
        console.print(
            Text(
                f"    {share(part.share):>5}  {difference_ms(part.difference_ms):>10}  "
                f"{visible(part.name, 60)}  ({part.run_by})"
            )
        )


def _indent(line: str) -> Padding:
    return Padding(Text(line), (0, 0, 0, 2))
