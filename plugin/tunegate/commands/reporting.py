"""The end of a gating command: the report in all its forms, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tunegate import artifact_io
from tunegate.artifacts.verdicts import Report, Verdict
from tunegate.commands.standard_output import write_json
from tunegate.edges.talk import Talk
from tunegate.errors import PASS
from tunegate.render import text
from tunegate.render.escape import visible
from tunegate.render.headline import STATUS_WORDS
from tunegate.render.outputs import rendered
from tunegate.settings import Settings
from tunegate.verdict.severity import EXIT_CODES

_LONGEST = 500
"""The characters of a line."""


def finish(report: Report, settings: Settings) -> int:
    """Write every rendering to `--out`, show the text, and give the verdict's exit code."""
    write_renderings(report, settings.out)
    is_terminal = sys.stderr.isatty()
    sys.stderr.write(text.render(report, colour=is_terminal))
    sys.stderr.write(f"\nreport: {settings.out / 'report.html'}\n")
    if isinstance(sys.stderr, Talk):
        sys.stderr.insist("".join(f"tunegate: {line}\n" for line in _no_passes(report.verdict)))
    if settings.as_json:
        write_json(report.verdict)
    return report.verdict.exit_code


def _no_passes(verdict: Verdict) -> Iterator[str]:
    """Yields a line for each finding behind the exit code."""
    if verdict.exit_code == PASS:
        return
    for each in verdict.findings:
        if EXIT_CODES[each.status] != PASS:
            word = STATUS_WORDS[each.status].lower()
            yield visible(f"{word}: {each.model} on {each.target}: {each.reason}", _LONGEST)


def write_renderings(report: Report, out: Path) -> None:
    for name, body in rendered(report).items():
        artifact_io.write_text(out / name, body)
