"""The hidden first line by which a later job finds the comment of an earlier one."""

from __future__ import annotations


def report_marker(name: str) -> str:
    """The first line of the report under this name: an HTML comment, which no Markdown shows."""
    plain = "".join(c for c in name if c.isalnum() or c in "._-/")
    return f"<!-- tunegate:report {plain} -->"
