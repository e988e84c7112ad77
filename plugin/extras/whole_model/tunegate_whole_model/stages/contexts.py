"""The contexts of a persistent kernel: Zhuang et al. ("MonoNN", OSDI 2024) try six of them, and
tune each kernel of the model by itself in each, so that the costs add up and do not multiply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Context(msgspec.Struct, frozen=True, order=True):
    """Blocks of so many threads, of which each multiprocessor has so many at once."""

    blocks_each: int
    threads: int

    def __str__(self) -> str:
        return f"{self.blocks_each} x {self.threads} threads"


CONTEXTS = tuple(Context(blocks, threads) for threads in (128, 256) for blocks in (1, 2, 3))
WayTimes = Mapping[str, float]
"""Milliseconds by the name of what was measured; what did not run is left out."""


def by_threads(contexts: Sequence[Context] = CONTEXTS) -> tuple[Context, ...]:
    """Those with the most threads at once first: what nobody can measure takes the first that
    fits."""
    return tuple(sorted(contexts, key=lambda c: (-c.blocks_each * c.threads, c.blocks_each)))


def fastest(offered: Mapping[str, Sequence[str]], times: Mapping[str, WayTimes]) -> dict[str, str]:
    """The fastest way to do each kernel. `offered` are the ways of each in the order of preference,
    `times` those that were measured: where none was, it is the first."""
    return {
        kernel: min(ways, key=lambda way: times.get(kernel, {}).get(way, float("inf")))
        for kernel, ways in offered.items()
    }
