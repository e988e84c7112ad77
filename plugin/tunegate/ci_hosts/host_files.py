"""Files for a CI, beside the results. Their names begin with `ci-`, by which the next run finds and
removes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tunegate import artifact_io

PREFIX = "ci-"


def write_host_file(directory: Path, name: str, text: str) -> None:
    """Raises OutputError."""
    artifact_io.write_text(directory / f"{PREFIX}{name}", text)


def write_host_json(directory: Path, name: str, content: object) -> None:
    """Raises OutputError."""
    write_host_file(directory, name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def dotenv(values: Mapping[str, str], *, limit_bytes: int) -> str:
    """`TUNEGATE_NAME=value`, a line for each value that is one line of plain characters, within the
    limit: shells and CIs read such files each in a way of its own."""
    lines = [
        f"TUNEGATE_{name.upper()}={value}\n"
        for name, value in values.items()
        if value and value.isascii() and value.isprintable() and not set(value) & set("\"'\\$`# ")
    ]
    kept: list[str] = []
    for line in lines:
        if sum(map(len, kept)) + len(line) <= limit_bytes:
            kept.append(line)
    return "".join(kept)
