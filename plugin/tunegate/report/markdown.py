"""Blocks of Markdown: tables and folds."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, assert_never

from tunegate.report.escape import code, prose
from tunegate.report.headline import MARKS, STATUS_WORDS
from tunegate.report.table import (
    CellContent,
    ChangeInterval,
    Column,
    Identifier,
    ReportTable,
    SignedTime,
    StatusWord,
)
from tunegate.report.units import NONE, interval, percent

NO_BREAK = "\u00a0"


def markdown_table(table: ReportTable) -> str:
    """Returns a table. A number stays on one line with its unit; a value that belongs under another
    column is below it in the same cell."""
    columns = [column for column in table.columns if not column.under]
    head = [column.title for column in columns]
    rule = ["--:" if column.is_number else "---" for column in columns]
    body = [_row(list(zip(table.columns, row, strict=True)), columns) for row in table.cells()]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def _row(row: list[tuple[Column[Any], CellContent]], columns: list[Column[Any]]) -> list[str]:
    """Returns the cells of a row; an empty text gets no line of its own."""
    cells = {column.title: _cell_markdown(cell, column) for column, cell in row if not column.under}
    for column, cell in row:
        below = _cell_markdown(cell, column) if column.under and cell else ""
        if below:
            cells[column.under] += f"<br>{below}"
    return [cells[column.title] for column in columns]


def _cell_markdown(cell: CellContent, column: Column[Any]) -> str:
    match cell:
        case Identifier(text=text):
            return code(text)
        case StatusWord(status=status):
            return f"{MARKS[status]} {STATUS_WORDS[status]}"
        case ChangeInterval(interval=found):
            if found is None:
                return NONE
            change = f"**{percent(found.center)}**<br>{interval(found)}"
            return change.replace(" ", NO_BREAK)
        case SignedTime():
            return cell.text.replace(" ", NO_BREAK)
        case str() as text:
            return text.replace(" ", NO_BREAK) if column.is_number else prose(text)
        case _ as never:
            assert_never(never)


def fold(title: str, body: str) -> str:
    """Returns a section that opens on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


# Fits Markdown into a number of characters by leaving out whole sections and table rows, the least
# important first, and a line that says so. Pure.

_HEADING = re.compile(r"#{1,6} (?P<heading>.*)|<details><summary>(?P<fold>.*?)</summary>")
_FOLD, _FOLD_END = "<details>", "</details>"
_MAX_TITLES = 6
_MAX_TITLE = 160
WHOLE_REPORT = "The whole report is `report.html`, among the files of this run."


class Section(NamedTuple):
    """One part of a report. The one with the highest rank is left out first, rank 0 never."""

    rank: int
    text: str


def sections_of(markdown: str) -> tuple[Section, ...]:
    """Returns a text's sections, each a heading with what follows it. The first is the most
    important, the last the least."""
    parts: list[list[str]] = []
    for block in _blocks(markdown):
        if len(parts) > 1 and parts[-1] == [parts[-1][0]] and parts[-1][0].startswith("#"):
            parts[-1].append(block)
        else:
            parts.append([block])
    return tuple(Section(rank, "\n\n".join(blocks)) for rank, blocks in enumerate(parts))


def fit_sections(sections: Sequence[Section], limit_chars: int) -> str:
    """Returns the sections in order, in at most `limit_chars` characters."""
    sections_left = dict(enumerate(sections))
    shortened: list[str] = []
    text = _join(sections_left, shortened)
    for at in sorted(sections_left, key=lambda each: (-sections[each].rank, -each)):
        excess = len(text) - limit_chars
        if excess <= 0:
            return text
        section = sections_left[at]
        if section.rank == 0:
            break
        title = _title(section.text)
        shortened.append(title)
        note = len(_join(sections_left, shortened)) - len(text)
        fewer, rows = _drop_rows(section.text, excess + note + len(" (00000 rows)"))
        if fewer:
            sections_left[at] = Section(section.rank, fewer)
            shortened[-1] = f"{title} ({rows} {'row' if rows == 1 else 'rows'})"
        else:
            del sections_left[at]
        text = _join(sections_left, shortened)
    return text if len(text) <= limit_chars else text[: max(0, limit_chars - 2)] + "…\n"


def fit_text(markdown: str, limit_chars: int) -> str:
    """Does the same for an undivided text."""
    if len(markdown) <= limit_chars:
        return markdown
    return fit_sections(sections_of(markdown), limit_chars)


# ---------------------------------------------------------------------------


def _blocks(markdown: str) -> Iterator[str]:
    """Yields the blocks between blank lines; a fold is one block."""
    lines: list[str] = []
    is_folded = False
    for line in markdown.splitlines():
        is_folded = (is_folded or line.startswith(_FOLD)) and line != _FOLD_END
        if line or is_folded:
            lines.append(line)
        elif lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _join(sections: dict[int, Section], shortened: Sequence[str]) -> str:
    note = [_note(shortened)] if shortened else []
    return "\n\n".join([*(sections[at].text for at in sorted(sections)), *note]) + "\n"


def _note(shortened: Sequence[str]) -> str:
    titles = [title for title in reversed(shortened) if title][:_MAX_TITLES]
    rest = len(shortened) - len(titles)
    more = [f"{rest} more {'section' if rest == 1 else 'sections'}"] if rest else []
    return f"*Left out here, for its length:* {'; '.join([*titles, *more])}. *{WHOLE_REPORT}*"


def _title(section: str) -> str:
    match = _HEADING.match(section)
    title = (match["heading"] or match["fold"] or "") if match else ""
    return title if len(title) <= _MAX_TITLE else ""


def _drop_rows(section: str, excess: int) -> tuple[str, int]:
    """Returns the section without its last rows, and their number; '' if too little would be
    left."""
    lines = section.splitlines()
    rows = _rows(lines)
    dropped: set[int] = set()
    while excess > 0 and len(dropped) < len(rows):
        at = rows[-1 - len(dropped)]
        dropped.add(at)
        excess -= len(lines[at]) + 1
    if excess > 0 or len(dropped) == len(rows):
        return "", 0
    return "\n".join(line for at, line in enumerate(lines) if at not in dropped), len(dropped)


def _rows(lines: Sequence[str]) -> list[int]:
    """Returns the indices of table rows below their heads, and of list items."""
    return [
        at
        for at, line in enumerate(lines)
        if line.startswith("- ")
        or (line.startswith("|") and at >= 2 and lines[at - 2].startswith("|"))  # noqa: PLR2004
    ]
