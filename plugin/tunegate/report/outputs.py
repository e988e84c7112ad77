"""Every rendering of a report, under the name of its file in `--out`."""

from __future__ import annotations

from collections.abc import Callable

from tunegate.artifacts.verdicts import Report
from tunegate.report import comment, junit, sarif


def _html(report: Report) -> str:
    # Its plots need a library that takes half a second to import.
    from tunegate.report.html import render  # noqa: PLC0415

    return render(report)


RENDERERS: dict[str, Callable[[Report], str]] = {
    "report.md": comment.render,
    "report.html": _html,
    "junit.xml": junit.render,
    "sarif.json": sarif.render,
}


def rendered(report: Report) -> dict[str, str]:
    return {name: render(report) for name, render in RENDERERS.items()}
