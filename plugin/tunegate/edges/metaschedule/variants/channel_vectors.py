"""Vectors of the channels of a grouped convolution."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

REGISTER = 16
"""The numbers of a vector register of 512 bits. Narrower machines take several."""
_MAX_LANES, _MAX_SPAN = 128, 64
_MAX_UNROLLED = 16
"""Channels in of one group that are written out one by one."""
_SHUFFLED = 0.7
"""The worth of a step of vectors that span groups, beside one that broadcasts a number: what it
multiplies by must be put in order first."""
_MIN_FILLED = 0.3
"""Registers that are emptier than this are not worth it."""


class Groups(NamedTuple):
    """`number` of groups, each of so many channels in and out."""

    number: int
    channels_in: int
    channels_out: int


class Piece(NamedTuple):
    """A part of a vector that is one register, or a part of one: `lanes` is a power of two."""

    first: int
    lanes: int


class ChannelVectors(NamedTuple):
    """Vectors of `lanes` channels out. Each is a part of a group, or, where `groups` is more than
    0, that many whole ones."""

    lanes: int
    groups: int

    @property
    def pieces(self) -> list[Piece]:
        """LLVM has bad code for other vectors than those of a power of two."""
        found: list[Piece] = []
        first = 0
        while first < self.lanes:
            rest = min(REGISTER, self.lanes - first)
            found.append(Piece(first, 1 << (rest.bit_length() - 1)))
            first += found[-1].lanes
        return found

    def span(self, groups: Groups) -> int:
        """The number of channels in that a vector of whole groups reads."""
        return self.groups * groups.channels_in

    def is_shuffled(self, groups: Groups) -> bool:
        return self.groups > 0 and groups.channels_in * groups.channels_out > 1

    def order(self, groups: Groups, channel: int) -> list[int]:
        """The places among the channels that are read: for each lane this channel of its group."""
        size = groups.channels_out
        return [lane // size * groups.channels_in + channel for lane in range(self.lanes)]


def channel_vectors(groups: Groups) -> ChannelVectors | None:
    """The vectors that fill registers best; None where they would be nearly empty."""
    inside = (ChannelVectors(lanes, 0) for lanes in divisors(groups.channels_out, _MAX_LANES))
    candidates = [*inside, *_spanning(groups)]
    # Of equals the shortest: loops make the rest.
    best = max(candidates, key=lambda vectors: (_worth(vectors, groups), -vectors.lanes))
    return best if _filled(best) >= _MIN_FILLED else None


def _spanning(groups: Groups) -> Iterable[ChannelVectors]:
    if groups.channels_in > _MAX_UNROLLED:
        return
    for several in divisors(groups.number, _MAX_SPAN):
        vectors = ChannelVectors(several * groups.channels_out, several)
        if vectors.lanes <= _MAX_SPAN and vectors.span(groups) <= _MAX_SPAN:
            yield vectors


def _worth(vectors: ChannelVectors, groups: Groups) -> float:
    return _filled(vectors) * (_SHUFFLED if vectors.is_shuffled(groups) else 1.0)


def _filled(vectors: ChannelVectors) -> float:
    """The share of the registers' numbers that count."""
    return vectors.lanes / (REGISTER * len(vectors.pieces))


def divisors(number: int, most: int) -> list[int]:
    return [divisor for divisor in range(1, most + 1) if number % divisor == 0]
