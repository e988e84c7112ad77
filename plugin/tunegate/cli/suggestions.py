"""Suggestions for a word that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SHORT = 4


def suggestion(word: str, known: Iterable[str]) -> str:
    """A sentence with the likeliest words, with a space before it; empty where none is near."""
    names = sorted(known)
    bare = word.lstrip("-")
    begun = [name for name in names if bare and name.lstrip("-").startswith(bare)]
    near = begun or difflib.get_close_matches(word, names, n=2, cutoff=_cutoff(bare))
    return f" Did you mean {' or '.join(near[:2])}?" if near else ""


def _cutoff(word: str) -> float:
    """Returns the least likeness of a suggestion: one wrong letter weighs more in a short word."""
    return 0.6 if len(word) <= _SHORT else 0.7
