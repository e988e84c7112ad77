"""One comment for each pull request and output directory, written again by every run."""

from __future__ import annotations

from typing import Any

from tunegate_action.github import GitHub

MAX_CHARACTERS = 64_000
_BOT = "Bot"


def marker(name: str) -> str:
    """A hidden first line by which a later run finds its comment."""
    plain = "".join(c for c in name if c.isalnum() or c in "._-/")
    return f"<!-- tunegate:report {plain} -->"


def publish(github: GitHub, number: int, name: str, text: str) -> None:
    """Update our comment, or write the first one. Raises GitHubRefusedError."""
    first = marker(name)
    body = f"{first}\n{text}"[:MAX_CHARACTERS]
    known = next((c for c in github.comments(number) if _is_ours(c, first)), None)
    if known is None:
        github.create(number, body)
    else:
        github.update(int(known["id"]), body)


def _is_ours(comment: dict[str, Any], first: str) -> bool:
    """The marker alone could be planted by anybody who may comment; the author must be a bot too."""
    is_bot = (comment.get("user") or {}).get("type") == _BOT
    return is_bot and str(comment.get("body", "")).startswith(first)
