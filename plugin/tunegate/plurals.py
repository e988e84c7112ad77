"""Numbers with what they count."""

from __future__ import annotations


def plural(number: int, singular: str, plural: str | None = None) -> str:
    """Such as `1 task`, `2 tasks` and `3,000 tasks`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
