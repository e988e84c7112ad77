"""Products of a block of rows with tiles of columns: by the processor's tiles, or its vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class SumBlock(NamedTuple):
    """`left` returns the address of a number of the narrow image, of which `base` is the block's
    first, `weights` that of a word of the packed weights, of which `first` is the block's. `sums`
    returns the address of a sum by its row and tile; there are so many `tiles`."""

    left: Callable[[Any], Any]
    base: Any
    weights: Callable[[Any], Any]
    first: Any
    sums: Callable[[int, int], Any]
    tiles: int


class BlockProducts(Protocol):
    """A block has so many `rows`, and `tiles` of columns at most. `functions` are the LLVM text of
    what is called."""

    @property
    def rows(self) -> int: ...
    @property
    def tiles(self) -> int: ...
    @property
    def functions(self) -> str: ...

    def require(self) -> None:
        """Emits an error where the machine has it not at the moment."""
        ...

    def begin(self) -> None:
        """Emits what comes before the first block of a thread."""
        ...

    def end(self) -> None:
        """Emits what comes after the last."""
        ...

    def add_up(self, block: SumBlock) -> None:
        """Emits a block's sums over all taps."""
        ...
