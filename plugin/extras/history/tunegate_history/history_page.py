"""The history as one HTML file: latencies over time or commits, with events beside them."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

import msgspec
from markupsafe import Markup

from tunegate.artifacts.history import HistoryEntry, ModelCost
from tunegate.report.escape import drawn_as_text, visible
from tunegate.report.headline import STATUS_WORDS
from tunegate.report.html_page import page_environment
from tunegate.wording import plural

TEMPLATES = "tunegate_history"
"""The package with these pages' templates; the reports' are used, too."""
WITHOUT_VERDICT = {"warmed": "Warmed", "cancelled": "Cancelled", "aborted": "Aborted"}


def render(entries: Sequence[HistoryEntry], location: str, refused: int = 0) -> str:
    """Returns the page; the same entries always give the same bytes. `refused` counts invalid
    lines."""
    page = page_environment(longest_text=300, own=TEMPLATES).get_template("history.html.j2")
    shown = sorted(entries, key=lambda e: (e.at, e.commit, e.model, e.target, e.device, e.status))
    timed = {(e.at, e.commit, e.repository) for e in shown if e.head_ms is not None}
    return page.render(
        location=location,
        models=plural(len({entry.model for entry in shown}), "model"),
        runs=plural(len(timed), "run"),
        left_out=refused_words(refused),
        scripts=history_scripts(),
        style=history_style(),
        # Every character that could end the element is escaped.
        words=Markup(script_json(STATUS_WORDS | WITHOUT_VERDICT)),  # noqa: S704
        entries=Markup(script_json(entry_columns(shown))),  # noqa: S704
    )


def refused_words(refused: int) -> str:
    """Returns the sentence about rejected lines, '' if there were none."""
    return (
        f"{plural(refused, 'line')} of another format, or dated in the future, left out."
        if refused
        else ""
    )


# The entries as columns of indices and numbers, which a browser parses instantly.

SHOWN_TEXT = 160
_Value = TypeVar("_Value", bound=Hashable)
_TEXTS: dict[str, Callable[[HistoryEntry], str]] = {
    "commit": lambda entry: entry.commit,
    "release": lambda entry: entry.release,
    "model": lambda entry: entry.model,
    "target": lambda entry: entry.target,
    "device": lambda entry: entry.device,
    "repository": lambda entry: entry.repository,
    "runtime": lambda entry: entry.runtime,
    "status": lambda entry: entry.status,
    "reason": lambda entry: entry.reason,
}
_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class _Numbered(Generic[_Value]):
    """Numbers values in order of appearance, each once."""

    def __init__(self) -> None:
        self.places: dict[_Value, int] = {}

    def place(self, value: _Value) -> int:
        return self.places.setdefault(value, len(self.places))


def entry_columns(entries: Sequence[HistoryEntry]) -> dict[str, object]:
    """Returns the columns by name. A text is an index into `texts`, which have only visible
    characters; a toolchain is an index into `versions`."""
    texts: _Numbered[str] = _Numbered()
    toolchains: _Numbered[tuple[tuple[str, str], ...]] = _Numbered()
    shown: dict[str, str] = {}

    def seen(text: str) -> int:
        if text not in shown:
            shown[text] = visible(text, SHOWN_TEXT)
        return texts.place(shown[text])

    columns: dict[str, object] = {
        name: [seen(text(entry)) for entry in entries] for name, text in _TEXTS.items()
    }
    intervals = [entry.change_percent for entry in entries]
    return columns | {
        "run": [texts.place(entry.run_url) for entry in entries],
        "at": [entry.at for entry in entries],
        "authored": [entry.authored for entry in entries],
        "change": [entry.change for entry in entries],
        "aside": [int(entry.is_aside or entry.change is not None) for entry in entries],
        "head": [_digits(entry.head_ms) for entry in entries],
        "chained": [_digits(each) for each in chained_ms(entries)],
        "center": [_digits(each.center) if each else None for each in intervals],
        "low": [_digits(each.low) if each else None for each in intervals],
        "high": [_digits(each.high) if each else None for each in intervals],
        "toolchain": [toolchains.place(_versions(entry)) for entry in entries],
        "texts": list(texts.places),
        "versions": [_visible_versions(each) for each in toolchains.places],
    }


_MOST_MS = 1e12


def chained_ms(entries: Sequence[HistoryEntry]) -> list[float | None]:
    """Returns the latency of each entry by the changes up to it, in the order of the runs; None
    where it has none.

    Base and head of a run were timed in turn on one machine, so a change is the model's. Latencies
    of two runs also differ by the load of the machine, which would look like a regression. A series
    begins with its first latency, and again with a model that is new. A commit that runs again
    changes nothing, and a head beside the default branch stands on the line as it was.
    """
    levels: dict[tuple[str, ...], tuple[float, str]] = {}
    return [_level(entry, levels) for entry in entries]


def _level(entry: HistoryEntry, levels: dict[tuple[str, ...], tuple[float, str]]) -> float | None:
    if entry.head_ms is None:
        return None
    key = (entry.repository, entry.model, entry.target, entry.device)
    found = entry.head_ms
    if key in levels and entry.status != "new":
        level, commit = levels[key]
        percent = entry.change_percent.center if entry.change_percent else 0.0
        moved = level if commit == entry.commit else level * (1 + percent / 100)
        found = moved if 0 < moved < _MOST_MS else entry.head_ms
    if not entry.is_aside and entry.change is None:
        levels[key] = (found, entry.commit)
    return found


def script_json(value: object) -> str:
    """Returns JSON that cannot end a script element, whatever its texts are."""
    text = msgspec.json.encode(value).decode()
    for character, reference in _SAFE.items():
        text = text.replace(character, reference)
    return text


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _versions(entry: HistoryEntry) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(entry.versions.items()))


def _visible_versions(versions: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {visible(name, 60): visible(value, 60) for name, value in versions}


# The history as CSV (RFC 4180), for a spreadsheet. No text in it is a formula there.

_FORMULA = frozenset("=+-@\t\r\n|%")
"""Characters that begin a spreadsheet formula. LibreOffice skips spaces before them."""
_DECIMALS = 6
"""A nanosecond, in milliseconds."""
_COLUMNS: tuple[tuple[str, Callable[[HistoryEntry], str | float | None]], ...] = (
    ("at_utc_seconds", lambda entry: entry.at),
    ("authored_utc_seconds", lambda entry: entry.authored),
    ("repository", lambda entry: entry.repository),
    ("change", lambda entry: entry.change),
    ("is_aside", lambda entry: str(entry.is_aside).lower()),
    ("commit", lambda entry: entry.commit),
    ("release", lambda entry: entry.release),
    ("run_url", lambda entry: entry.run_url),
    ("model", lambda entry: entry.model),
    ("target", lambda entry: entry.target),
    ("device", lambda entry: entry.device),
    ("runtime", lambda entry: entry.runtime),
    ("status", lambda entry: entry.status),
    ("reason", lambda entry: entry.reason),
    ("base_ms", lambda entry: entry.base_ms),
    ("head_ms", lambda entry: entry.head_ms),
    ("change_low_percent", lambda entry: _percents(entry)[0]),
    ("change_percent", lambda entry: _percents(entry)[1]),
    ("change_high_percent", lambda entry: _percents(entry)[2]),
    ("versions", lambda entry: ", ".join(f"{n} {v}" for n, v in sorted(entry.versions.items()))),
)


def csv_lines(entries: Sequence[HistoryEntry]) -> str:
    """Returns a line of names, and one per entry; unknown values are empty."""
    out = io.StringIO()
    writer = csv.writer(out)
    costs = ModelCost.__struct_fields__
    writer.writerow([*(name for name, _ in _COLUMNS), *costs])
    for entry in entries:
        cost = [getattr(entry.cost, name) for name in costs] if entry.cost else [None] * len(costs)
        writer.writerow([_cell(value(entry)) for _, value in _COLUMNS] + [_cell(c) for c in cost])
    return out.getvalue()


def _percents(entry: HistoryEntry) -> tuple[float | None, float | None, float | None]:
    found = entry.change_percent
    return (None, None, None) if found is None else (found.low, found.center, found.high)


def _cell(value: Any) -> Any:  # noqa: ANN401  # what the csv module takes
    if value is None:
        return ""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, _DECIMALS)
    if not isinstance(value, str):
        return value
    shown = drawn_as_text(value)
    return f"'{shown}" if shown.lstrip()[:1] in _FORMULA else shown


# Scripts and styles of a page, each allowed only by its hash: no text of an entry can be one.

_UPLOT = "vendor/uplot"
_OWN = ("entries.js", "chart.js", "controls.js")


class Inlined(msgspec.Struct, frozen=True):
    """A text, and the source expression that allows it in a Content-Security-Policy."""

    text: Markup
    source: Markup


@cache
def history_scripts() -> tuple[Inlined, ...]:
    """Returns the script of uPlot, and ours, which is one script in strict mode."""
    own = "\n".join(_read_resource(f"templates/history/{name}") for name in _OWN)
    return _inline(_read_resource(f"{_UPLOT}/uPlot.iife.min.js")), _inline(f'"use strict";\n{own}')


@cache
def history_style() -> Inlined:
    """Returns the styles of every report, of uPlot and of this page."""
    own = (f"{_UPLOT}/uPlot.min.css", "templates/history/history.css")
    report = _read_resource("templates/report.css", package="tunegate.report")
    return _inline("\n".join([report, *map(_read_resource, own)]))


def _inline(text: str) -> Inlined:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    # Both are files of this package.
    return Inlined(Markup(text), Markup(f"'sha256-{digest}'"))  # noqa: S704


def _read_resource(name: str, package: str = TEMPLATES) -> str:
    """Returns the file with the line ends that a browser hashes."""
    return files(package).joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")
