"""Every rendering of a report, under the name of its file in `--out`."""

from __future__ import annotations

from collections.abc import Callable

from tunegate.artifacts.verdicts import Report
from tunegate.render import html, junit, markdown, sarif

RENDERERS: dict[str, Callable[[Report], str]] = {
    "report.md": markdown.render,
    "report.html": html.render,
    "junit.xml": junit.render,
    "sarif.json": sarif.render,
}


def rendered(report: Report) -> dict[str, str]:
    return {name: render(report) for name, render in RENDERERS.items()}
