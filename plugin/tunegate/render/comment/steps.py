"""What to do next, as Markdown: names as code, and the first steps before the fold."""

from __future__ import annotations

from collections.abc import Sequence

from tunegate.artifacts.verdicts import Name, Step
from tunegate.plurals import plural
from tunegate.render.blocks import fold
from tunegate.render.escape import code, prose

_OPEN = 4
_SHOWN = 30


def numbered_steps(steps: Sequence[Step]) -> str:
    """A numbered list. What comes after the first few is in a fold, with its numbers."""
    lines = [f"{number}. {step_markdown(step)}" for number, step in enumerate(steps, start=1)]
    if len(lines) <= _OPEN + 1:
        return "\n".join(lines)
    folded = lines[_OPEN:_SHOWN]
    rest = len(lines) - _SHOWN
    more = [f"\n… and {rest} more."] if rest > 0 else []
    title = plural(len(lines) - _OPEN, "more step")
    return "\n".join([*lines[:_OPEN], "", fold(title, "\n".join([*folded, *more]))])


def step_markdown(step: Step) -> str:
    """The sentence with its names as code."""
    return "".join(
        code(each.text) if isinstance(each, Name) else _between(each, is_first=at == 0)
        for at, each in enumerate(step.pieces)
    )


def _between(piece: str, *, is_first: bool) -> str:
    """Text with its blanks. Behind a name it is in the middle of a line, as behind a letter."""
    drawn = prose(piece) if is_first else prose(f"x{piece}")[1:]
    return f"{drawn} " if piece.endswith(" ") else drawn
