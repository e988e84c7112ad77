"""Searches the changed package that makes a model slower: single ones first, then halves. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

IsSlower = Callable[[frozenset[str]], bool | None]
"""Returns whether the model is slower with these packages of the head, and otherwise the base's;
None if that is unclear."""


class FoundPackages(msgspec.Struct, frozen=True):
    """The fewest `packages` that were shown to make it slower; `is_one` if it is a single one.
    `why` the search went no further, else ''."""

    packages: tuple[str, ...]
    why: str = ""

    @property
    def is_one(self) -> bool:
        return len(self.packages) == 1


def search(changed: Sequence[str], is_slower: IsSlower) -> FoundPackages:
    """Searches the packages, the likeliest first in `changed`: the runtime itself. That takes one
    measurement if it is guilty, and at most twice the logarithm of their number more."""
    suspects = tuple(changed)
    size = 1
    while len(suspects) > 1:
        size = min(size, len(suspects) - 1)
        first, rest = suspects[:size], suspects[size:]
        found = is_slower(frozenset(first))
        if found is False:
            first, found = rest, is_slower(frozenset(rest))
        if found is None:
            return FoundPackages(suspects, "it could not be told further")
        if not found:
            return FoundPackages(suspects, "none of them alone does it")
        suspects = first
        size = max(1, len(suspects) // 2)
    return FoundPackages(suspects)
