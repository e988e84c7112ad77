"""The contexts of a persistent kernel: Zhuang et al. ("MonoNN", OSDI 2024) try six, and tune each
kernel of the model separately in each, so that costs add up instead of multiplying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Context(msgspec.Struct, frozen=True, order=True):
    """Blocks of so many threads, and how many of them each multiprocessor holds at once."""

    blocks_each: int
    threads: int

    def __str__(self) -> str:
        return f"{self.blocks_each} x {self.threads} threads"


CONTEXTS = tuple(Context(blocks, threads) for threads in (128, 256) for blocks in (1, 2, 3))
WayTimes = Mapping[str, float]
"""Milliseconds by name of what was measured, without what did not run."""


def by_threads(contexts: Sequence[Context] = CONTEXTS) -> tuple[Context, ...]:
    """Returns the contexts by resident threads, most first: without a measurement the first that
    fits is taken."""
    return tuple(sorted(contexts, key=lambda c: (-c.blocks_each * c.threads, c.blocks_each)))


def fastest(offered: Mapping[str, Sequence[str]], times: Mapping[str, WayTimes]) -> dict[str, str]:
    """Returns the fastest way for each kernel. `offered` are its ways in order of preference,
    `times` the measured ones; without any, the first is taken."""
    return {
        kernel: min(ways, key=lambda way: times.get(kernel, {}).get(way, float("inf")))
        for kernel, ways in offered.items()
    }
