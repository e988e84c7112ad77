"""A table for people, and lines instead if there is no room for it."""

from collections.abc import Iterable, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tunegate.report.escape import visible
from tunegate.tune.revalidation import Revalidated
from tunegate.wording import plural

_AROUND = 3
"""The columns that a cell takes beyond its text."""
_WIDEST_LOG = 240
"""A log has no width; nobody reads wider tables."""


class Output(Console):
    """Standard output with tables and colours. A closed pipe is an error like any other: rich
    itself would exit with 1, a regression."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def show_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    widest: int = _WIDEST_LOG,
) -> None:
    """Shows a table. Cells are never markup, as they may come from a store that others write to; a
    Text cell keeps its own style. Only the last column is wrapped, between words. A log has at most
    `widest` columns. If there is no room for that, each row becomes a few lines."""
    heading = Text(title) if title else None
    cells = [[_cell(cell) for cell in row] for row in rows]
    table = Table(title=heading, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column != columns[-1])
    for row in cells:
        table.add_row(*row)
    console = Output()
    if not console.is_terminal:
        options = console.options.update(max_width=widest)
        width = max(console.width, Measurement.get(console, options, table).maximum)
        console.width = min(width, widest)
    if _least_width(columns, cells) <= console.width:
        console.print(table)
    else:
        show_lines([title] if title else [])
        for first, text in _blocks(columns, cells):
            console.print(first, soft_wrap=True)
            console.print(Padding(text, (0, 0, 0, 2)))


def show_lines(lines: Iterable[str]) -> None:
    console = Output()
    for line in lines:
        console.print(Text(line), soft_wrap=True)  # a key or an address is copied whole


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> int:
    """Returns the width of a table whose last column alone is wrapped, between its words."""
    *fixed, last = ([Text(name), *(row[at] for row in rows)] for at, name in enumerate(columns))
    widths = [max(cell.cell_len for cell in column) for column in fixed]
    words = [Text(word).cell_len for cell in last for word in cell.plain.split()]
    return sum(widths) + max(words, default=0) + _AROUND * len(columns) - 1


def _blocks(columns: Sequence[str], rows: Iterable[Sequence[Text]]) -> Iterator[tuple[Text, Text]]:
    """Yields the first cell of each row, and the other cells with their column names."""
    for first, *others in rows:
        pairs = zip(columns[1:], others, strict=True)
        parts = [Text.assemble(f"{name} " if name else "", cell) for name, cell in pairs if cell]
        yield first, Text(", ").join(parts)


def _cell(cell: object) -> Text:
    return cell if isinstance(cell, Text) else Text(str(cell))


# Results of revalidated records, as a table for people.


def show_revalidation(title: str, results: Sequence[Revalidated]) -> None:
    if not results:
        show_lines([f"{title}: no record for a task of these models that is not there already"])
        return
    show_table(
        title,
        ("task", "", "claimed ms", "measured ms", "beside it ms", ""),
        (
            (
                result.name,
                result.status,
                f"{result.claimed_ms:.4g}",
                _milliseconds(result.measured_ms),
                _milliseconds(result.incumbent_ms),
                "not what was claimed" if result.is_implausible else visible(result.reason),
            )
            for result in results
        ),
    )
    taken_over = sum(result.status == "taken" for result in results)
    show_lines([f"better records now: {taken_over} of {plural(len(results), 'task')}"])


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
