"""Annotations as lines of a log, for a CI that shows none."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tunegate.ci_hosts.protocol import Annotation

_MAX_CHARACTERS = 4000


def log_annotations(annotations: Sequence[Annotation]) -> None:
    """Writes a line for each to standard error, at once."""
    for annotation in annotations:
        sys.stderr.write(f"{log_line(annotation)}\n")
    sys.stderr.flush()


def log_line(annotation: Annotation) -> str:
    """Returns the annotation as one line of plain text: no colours, no sections, no second line."""
    place = f"{annotation.file}:{annotation.line}: " if annotation.file and annotation.line else ""
    said = f"{annotation.title}: {annotation.level}: {place}{annotation.text}"[:_MAX_CHARACTERS]
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in said)
