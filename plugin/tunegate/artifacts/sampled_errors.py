"""The error of a build on each input that it was tried on."""

from __future__ import annotations

import msgspec


class SampledErrors(msgspec.Struct, frozen=True, kw_only=True):
    """One number an input: the largest error of its outputs `relative` to the largest magnitude of
    the output, and whether the largest value is in the same place. Empty where no output tells
    it. `largest_of` is the output with the largest error, `disagrees` the one whose largest value
    moves most often; '' where none does."""

    relative: tuple[float, ...] = ()
    agrees: tuple[bool, ...] = ()
    saturated: tuple[str, ...] = ()
    largest_of: str = ""
    disagrees: str = ""
