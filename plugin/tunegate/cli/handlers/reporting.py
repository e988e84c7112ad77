"""Ends a gating command: the report in all its forms, and the exit code."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import seal
from tunegate.artifacts.verdicts import EXIT_CODES, Report, Verdict
from tunegate.errors import PASS, EnvironmentUnfitError
from tunegate.report import comment, junit, sarif, text
from tunegate.report.escape import visible
from tunegate.report.headline import STATUS_WORDS
from tunegate.settings import Settings
from tunegate.system.output.log_file import Talk

_LONGEST = 500
"""The most characters of a line."""


def finish(report: Report, settings: Settings) -> int:
    """Writes every rendering to `--out`, and the verdict last, so that a run that dies before has
    none. Shows the text, and returns the verdict's exit code."""
    write_renderings(report, settings.out)
    artifact_io.write(settings.out / "verdict.json", report.verdict)
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
    for finding in verdict.findings:
        if EXIT_CODES[finding.status] != PASS:
            word = STATUS_WORDS[finding.status].lower()
            yield visible(
                f"{word}: {finding.model} on {finding.target}: {finding.reason}", _LONGEST
            )


def write_renderings(report: Report, out: Path) -> None:
    for name, body in render_forms(report).items():
        artifact_io.write_text(out / name, body)


# Standard output, which carries only the requested product.


def write_line(text: str) -> None:
    """Writes a line of the product. Raises EnvironmentUnfitError on a full device."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"standard output cannot be written ({error.strerror})"
        raise EnvironmentUnfitError(message) from error


def write_json(artifact: msgspec.Struct) -> None:
    """Writes an artifact as its file has it: a pipe's reader can read it like the file. A stream
    with an encoding of few characters gets JSON's escapes."""
    text = seal(artifact).decode()
    if not (sys.stdout.encoding or "utf-8").lower().startswith("utf"):
        text = "".join(each if each.isascii() else json.dumps(each)[1:-1] for each in text)
    write_line(text)


# Every rendering of a report, by the name of its file in `--out`.


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


def render_forms(report: Report) -> dict[str, str]:
    return {name: render(report) for name, render in RENDERERS.items()}
