"""The number that everything random in a measurement comes from.

It is new in each run: a model that knew its inputs, or the order of the launches, could be fast
where it is measured and slow elsewhere.
"""

from __future__ import annotations

import hashlib
import secrets

BITS = 64


def new_seed() -> int:
    """A seed from the operating system."""
    return secrets.randbits(BITS)


def derived(seed: int, *purpose: str | int) -> int:
    """The seed of one purpose. It says nothing of another's: what a model sees of its inputs does
    not tell it the order of the blocks."""
    text = "/".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: BITS // 8])
