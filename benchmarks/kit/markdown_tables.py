"""The Markdown tables in a text, such as what a benchmark has printed."""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

RULE = re.compile(r"\|(\s*:?-+:?\s*\|)+")
BETWEEN_CELLS = re.compile(r"(?<!\\)\|")


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The columns with the numbers of `words` are words, the others numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[int, ...] = (0,)


def tables(text: str) -> tuple[Table, ...]:
    """All tables of `text` that have a row. Other lines may stand between their rows."""
    found: list[tuple[tuple[str, ...], tuple[int, ...], list[tuple[str, ...]]]] = []
    lines = [line.strip() for line in text.splitlines()]
    for line, following in pairwise([*lines, ""]):
        if not line.startswith("|") or RULE.fullmatch(line):
            continue
        if RULE.fullmatch(following):
            words = (n for n, rule in enumerate(cells(following)) if not rule.endswith(":"))
            found.append((cells(line), tuple(words), []))
        elif found:
            found[-1][2].append(as_wide(cells(line), len(found[-1][0])))
    return tuple(Table(columns, tuple(rows), words) for columns, words, rows in found if rows)


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in BETWEEN_CELLS.split(line[1:].removesuffix("|")))


def as_wide(row: tuple[str, ...], width: int) -> tuple[str, ...]:
    return (*row, *[""] * (width - len(row)))[:width]


def drawn(table: Table) -> str:
    """The table in Markdown."""
    rules = ("---" if at in table.words else "--:" for at in range(len(table.columns)))
    lines = [f"|{'|'.join(rules)}|"]
    lines += [f"| {' | '.join(row)} |" for row in table.rows]
    return "\n".join([f"| {' | '.join(table.columns)} |", *lines])
