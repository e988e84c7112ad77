"""The next steps as Markdown: names as code, and the first steps before the fold."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.verdicts import Named, NextStep
from tunegate.render.escape import code, prose

_OPEN = 4
_SHOWN = 30


def numbered_steps(steps: Sequence[NextStep]) -> tuple[str, str]:
    """Two parts of one numbered list: what is seen at once, and what comes after the first few
    (empty where it would be a single one)."""
    lines = [f"{number}. {step_markdown(step)}" for number, step in enumerate(steps, start=1)]
    if len(lines) <= _OPEN + 1:
        return "\n".join(lines), ""
    rest = len(lines) - _SHOWN
    more = [f"\n… and {rest} more."] if rest > 0 else []
    return "\n".join(lines[:_OPEN]), "\n".join([*lines[_OPEN:_SHOWN], *more])


def step_markdown(step: NextStep) -> str:
    """The sentence with its names as code."""
    return "".join(
        code(each.text) if isinstance(each, Named) else _between(each, is_first=at == 0)
        for at, each in enumerate(step.pieces)
    )


def _between(piece: str, *, is_first: bool) -> str:
    """Text with its blanks. Behind a name it is in the middle of a line, as behind a letter."""
    drawn = prose(piece) if is_first else prose(f"x{piece}")[1:]
    return f"{drawn} " if piece.endswith(" ") else drawn
