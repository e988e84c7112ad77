"""Scripts and styles inside of a page, each allowed by its hash alone: no text of an entry can be
one."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

import msgspec
from markupsafe import Markup

_RENDER = Path(__file__).parents[1]
_UPLOT = "vendor/uplot"
_OWN = ("entries.js", "chart.js", "controls.js")


class Inlined(msgspec.Struct, frozen=True):
    """A text, and the source expression by which a Content-Security-Policy allows it."""

    text: Markup
    source: Markup


@cache
def history_scripts() -> tuple[Inlined, ...]:
    """The script of uPlot, and ours, which is one script in strict mode."""
    own = "\n".join(_read(f"templates/history/{name}") for name in _OWN)
    return _inlined(_read(f"{_UPLOT}/uPlot.iife.min.js")), _inlined(f'"use strict";\n{own}')


@cache
def history_style() -> Inlined:
    """The styles of every report, of uPlot and of this page."""
    own = ("templates/report.css", f"{_UPLOT}/uPlot.min.css", "templates/history/history.css")
    return _inlined("\n".join(map(_read, own)))


def _inlined(text: str) -> Inlined:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    # Both are files of this package.
    return Inlined(Markup(text), Markup(f"'sha256-{digest}'"))  # noqa: S704


def _read(name: str) -> str:
    """The file, with the line ends by which a browser hashes it."""
    return (_RENDER / name).read_text(encoding="utf-8").replace("\r\n", "\n")
