"""The end of a gating command: the report in all its forms, and the exit code."""

from __future__ import annotations

import sys
from pathlib import Path

from tunegate import artifact_io
from tunegate.artifacts.verdicts import Report
from tunegate.commands.standard_output import write_json
from tunegate.render import text
from tunegate.render.outputs import rendered
from tunegate.settings import Settings


def finish(report: Report, settings: Settings) -> int:
    """Write every rendering to `--out`, show the text, and give the verdict's exit code."""
    write_renderings(report, settings.out)
    is_terminal = sys.stderr.isatty()
    sys.stderr.write(text.render(report, colour=is_terminal))
    sys.stderr.write(f"\nreport: {settings.out / 'report.html'}\n")
    if settings.as_json:
        write_json(report.verdict)
    return report.verdict.exit_code


def write_renderings(report: Report, out: Path) -> None:
    for name, body in rendered(report).items():
        artifact_io.write_text(out / name, body)
