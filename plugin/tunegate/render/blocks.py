"""Blocks of Markdown: tables, folds, and a text that is cut where a section ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

NO_BREAK = "\u00a0"
CUT = "*The rest does not fit here: it is in `report.html` and `report.md`.*"


class Column(msgspec.Struct, frozen=True):
    title: str
    number: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """A table; the cells must be escaped already. A number stays on one line with its unit."""
    head = [column.title for column in columns]
    rule = ["--:" if column.number else "---" for column in columns]
    body = [
        [
            cell.replace(" ", NO_BREAK) if column.number else cell
            for column, cell in zip(columns, row, strict=True)
        ]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))


def fold(title: str, body: str) -> str:
    """A section that opens on a click."""
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def fitted(sections: Sequence[str], limit_chars: int) -> str:
    """The sections that fit, in order, with a note where some did not."""
    whole = "\n\n".join(sections) + "\n"
    if len(whole) <= limit_chars:
        return whole
    room = limit_chars - len(CUT) - 3
    kept: list[str] = []
    for section in sections:
        room -= len(section) + 2
        if room < 0:
            break
        kept.append(section)
    if not kept:
        return sections[0][: max(0, limit_chars - 2)] + "…\n"
    return "\n\n".join([*kept, CUT]) + "\n"
