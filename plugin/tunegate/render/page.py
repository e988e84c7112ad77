"""The base of every HTML page of ours: templates in which no text can be anything but text."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from tunegate.render.escape import visible
from tunegate.render.headline import STATUS_WORDS
from tunegate.render.tables.html_table import html_table
from tunegate.wording.latency import milliseconds


def page_environment(*, longest_text: int) -> Environment:
    """Texts beyond `longest_text` characters are cut in the middle."""
    environment = Environment(
        loader=PackageLoader("tunegate.render"),
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
