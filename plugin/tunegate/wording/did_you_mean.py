"""The hint behind a word that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def did_you_mean(word: str, known: Sequence[str], otherwise: str) -> str:
    """The known word that looks most like it, as a question; `otherwise` where none does."""
    near = difflib.get_close_matches(word, known, n=1)
    return f"Did you mean {near[0]}?" if near else otherwise
