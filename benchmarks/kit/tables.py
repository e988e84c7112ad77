"""Tables in Markdown, a line as soon as it is known."""

from __future__ import annotations

from collections.abc import Collection


def heading(titles: str, words: Collection[int] = (0,)) -> None:
    """Begins a table of these `titles`, which ` | ` parts. The columns with the numbers of `words`
    are words, the others numbers."""
    columns = titles.split(" | ")
    row(*columns)
    rules = ("---" if at in words else "--:" for at in range(len(columns)))
    print(f"|{'|'.join(rules)}|", flush=True)


def row(*cells: object) -> None:
    """Prints one line of it."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
