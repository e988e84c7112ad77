"""The history as one HTML file: latencies over time or commits, with what happened beside them."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from tunegate.artifacts.history import HistoryEntry
from tunegate.plurals import plural
from tunegate.render.headline import STATUS_WORDS
from tunegate.render.history.entry_columns import entry_columns, script_json
from tunegate.render.history.inlined import history_scripts, history_style
from tunegate.render.page import page_environment

WITHOUT_VERDICT = {"warmed": "Warmed", "cancelled": "Cancelled", "aborted": "Aborted"}


def render(entries: Sequence[HistoryEntry], location: str, refused: int = 0) -> str:
    """The page; the same entries always give the same bytes. `refused` lines were none of ours."""
    page = page_environment(longest_text=300).get_template("history.html.j2")
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
    """The sentence about lines that were refused; '' where none was."""
    return f"{plural(refused, 'line')} of another format left out." if refused else ""
