"""Which of several changed packages makes a model slower: one alone first, then halves. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

IsSlower = Callable[[frozenset[str]], bool | None]
"""Whether the model is slower with these packages of the head, and all others of the base. None
where that could not be told."""


class FoundPackages(msgspec.Struct, frozen=True):
    """The fewest `packages` that were shown to make it slower; `is_one` where that is one. `why` it
    went no further, else ''."""

    packages: tuple[str, ...]
    why: str = ""

    @property
    def is_one(self) -> bool:
        return len(self.packages) == 1


def search(changed: Sequence[str], is_slower: IsSlower) -> FoundPackages:
    """The search, with the likeliest package first in `changed`: the runtime itself. It takes one
    measurement where that is to blame, and at most twice the logarithm of their number more."""
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
