"""Files for a CI, beside the results. Their names begin with `ci-`, by which the next run finds and
removes them."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from tunegate.artifacts import artifact_io
from tunegate.ci.protocol import Annotation

PREFIX = "ci-"
_MAX_OUTPUT_BYTES = 4096
"""The smallest limit of a CI is 5 KiB: more fails the job there."""


def write_host_file(directory: Path, name: str, text: str) -> None:
    """Writes a text file. Raises OutputError."""
    artifact_io.write_text(directory / f"{PREFIX}{name}", text)


def write_host_json(directory: Path, name: str, content: object) -> None:
    """Writes a JSON file. Raises OutputError."""
    write_host_file(directory, name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_outputs(directory: Path, outputs: Mapping[str, str]) -> None:
    """Writes a job's outputs for its later steps. Raises OutputError."""
    write_host_file(directory, "outputs.env", dotenv(outputs, limit_bytes=_MAX_OUTPUT_BYTES))


def report_inside(out: Path, workspace: str) -> str:
    """Returns the report's path in the workspace whose files a CI keeps, as part of an address; ''
    if it is elsewhere."""
    try:
        inside = Path.cwd().joinpath(out).relative_to(workspace or "/dev")
    except (OSError, ValueError):
        return ""
    return quote((inside / "report.html").as_posix())


def dotenv(values: Mapping[str, str], *, limit_bytes: int) -> str:
    """Returns a `TUNEGATE_NAME=value` line for each value that is one line of plain characters,
    within the limit: every shell and CI reads such files differently."""
    lines = [
        f"TUNEGATE_{name.upper()}={value}\n"
        for name, value in values.items()
        if value and value.isascii() and value.isprintable() and not set(value) & set("\"'\\$`# ")
    ]
    lines_of_file: list[str] = []
    for line in lines:
        if sum(map(len, lines_of_file)) + len(line) <= limit_bytes:
            lines_of_file.append(line)
    return "".join(lines_of_file)


# Annotations as lines of a log, for a CI that shows none.

_MAX_CHARACTERS = 4000


def log_annotations(annotations: Sequence[Annotation]) -> None:
    """Writes a line for each annotation to standard error at once."""
    for annotation in annotations:
        sys.stderr.write(f"{log_line(annotation)}\n")
    sys.stderr.flush()


def log_line(annotation: Annotation) -> str:
    """Returns the annotation as one line of plain text: no colours, no sections, no second line."""
    place = f"{annotation.file}:{annotation.line}: " if annotation.file and annotation.line else ""
    text = f"{annotation.title}: {annotation.level}: {place}{annotation.text}"[:_MAX_CHARACTERS]
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
