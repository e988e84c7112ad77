"""The base of all our HTML pages: templates in which text can be nothing but text."""

from collections.abc import Sequence
from typing import Any, assert_never

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tunegate.report.escape import visible
from tunegate.report.headline import STATUS_WORDS
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
from tunegate.wording import milliseconds


def page_environment(*, longest_text: int, own: str = "tunegate.report") -> Environment:
    """The templates of the package `own`, and those of the reports. Texts beyond `longest_text`
    characters are cut in the middle."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(own), PackageLoader("tunegate.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: visible(value, longest_text) if type(value) is str else value,
    )
    environment.filters |= {"ms": milliseconds}
    environment.globals |= {
        "WORDS": STATUS_WORDS,
        "table": lambda table, title="": html_table(table, longest_text, title),
    }
    return environment


# A table as HTML, in which text can be nothing but text.

_CHANGE = Markup('<span><strong>{}</strong><span class="sub">{}</span></span>')
_NOTHING = Markup("{}").format(NONE)
_Cell = tuple[Column[Any], CellContent]


def html_table(table: ReportTable, longest_text: int, title: str) -> Markup:
    """Returns the table in HTML, the column that names a row first: on a narrow page it heads the
    row's cells. Texts beyond `longest_text` characters are cut in the middle. `title` is read aloud
    for the table, which can be scrolled without a mouse."""
    lower_titles = {column.under for column in table.columns if column.under}
    columns = sorted(table.columns, key=lambda column: column.title not in lower_titles)
    upper_columns = [column for column in columns if not column.under]
    titles = Markup().join(_title(column) for column in upper_columns)
    ordered = ReportTable(tuple(columns), table.rows)
    rows = Markup("\n").join(
        _row(list(zip(columns, cells, strict=True)), longest_text) for cells in ordered.cells()
    )
    return Markup(
        '<div class="scroll" role="group" aria-label="{}" tabindex="0"><table class="stack">\n'
        "<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody></table></div>"
    ).format(title or "Table", titles, rows)


def _title(column: Column[Any]) -> Markup:
    number = Markup(' class="n"') if column.is_number else Markup()
    return Markup('<th scope="col"{}>{}</th>').format(number, column.title)


def _row(row: Sequence[_Cell], longest_text: int) -> Markup:
    (first, name), *others = row
    below = [cell for column, cell in others if column.under == first.title]
    parts = [_inner(name, longest_text), *(_below(cell, longest_text) for cell in below)]
    cells = [Markup('<th scope="row" class="name">{}</th>').format(Markup().join(parts))]
    cells += [_cell(column, cell, longest_text) for column, cell in others if not column.under]
    tones = [cell.status for _, cell in row if isinstance(cell, StatusWord)]
    tone = Markup(' class="tone-{}"').format(tones[0]) if tones else Markup()
    return Markup("<tr{}>{}</tr>").format(tone, Markup().join(cells))


def _cell(column: Column[Any], cell: CellContent, longest_text: int) -> Markup:
    names = [
        "n" if column.is_number else "",
        column.layout,
        _tone(cell) if isinstance(cell, SignedTime) else "",
    ]
    kind = " ".join(filter(None, names))
    classes = Markup(' class="{}"').format(kind) if kind else Markup()
    inner = _inner(cell, longest_text)
    if column.layout == "why":
        inner = Markup("<span>{}</span>").format(inner)
    return Markup('<td{} data-label="{}">{}</td>').format(classes, column.title, inner)


def _inner(cell: CellContent, longest_text: int) -> Markup:
    match cell:
        case Identifier(text=text):
            return Markup("<code>{}</code>").format(visible(text, longest_text))
        case StatusWord(status=status):
            return Markup('<span class="word">{}</span>').format(STATUS_WORDS[status])
        case ChangeInterval(interval=found):
            return _CHANGE.format(percent(found.center), interval(found)) if found else _NOTHING
        case SignedTime():
            return Markup("{}").format(cell.text)
        case str() as text:
            return Markup("{}").format(visible(text, longest_text))
        case _ as never:
            assert_never(never)


def _below(cell: CellContent, longest_text: int) -> Markup:
    text = cell.text if isinstance(cell, Identifier) else cell
    line = visible(text, longest_text) if isinstance(text, str) else ""
    return Markup('<span class="sub">{}</span>').format(line) if line else Markup()


def _tone(cell: SignedTime) -> str:
    return "slower" if cell.milliseconds > 0 else "faster"
