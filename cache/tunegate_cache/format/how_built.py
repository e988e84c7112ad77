"""The choices that timing made while a model was built, as a record's decisions: the next build of
the same graph measures nothing again.

They say how a model is built, never what it computes: a build that uses them checks that they fit
the model, and checks the numbers.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

_Decision = tuple[int, tuple[int, ...]]
"""A record's decision: an index, and its integers."""
MOST_NODES = 2**20
MOST_DECISIONS = 256
"""The most decisions of a record."""
_SCHEDULES = 2**52
"""The smallest index of a schedule; a node's is smaller."""
_DIGITS = 13
"""The hexadecimal digits of a digest that fit below it."""
_KEPT = 0


class HowBuilt(msgspec.Struct, frozen=True, kw_only=True):
    """`compiled` are the places of the nodes that run compiled in a model in parts; none stand for
    a model that is compiled whole. `kept` are the marks of the schedules that its kernels have; all
    others have the default one, which was faster in the model, or all there was. Of a model in
    parts that of its graph is among them: the places mean nothing in another one."""

    compiled: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()


def mark_of(digest: str) -> int:
    """Returns the mark of a schedule, or of a graph, by its digest."""
    return _SCHEDULES + int(digest[:_DIGITS], 16)


def decisions_of(how: HowBuilt) -> tuple[_Decision, ...] | None:
    """Returns the decisions, None if they do not fit a record."""
    runs = {start: (length,) for start, length in _runs(how.compiled)}
    runs |= dict.fromkeys(how.kept, (_KEPT,))
    return tuple(sorted(runs.items())) if len(runs) <= MOST_DECISIONS else None


def how_built(decisions: Sequence[_Decision]) -> HowBuilt | None:
    """Returns the content of these decisions, None if they are empty or invalid."""
    compiled: list[int] = []
    kept_decisions: list[int] = []
    for index, values in decisions:
        match values:
            case (value,) if index >= _SCHEDULES and value == _KEPT:
                kept_decisions.append(index)
            case (length,) if length >= 1 and _is_next(index, length, compiled):
                compiled += range(index, index + length)
            case _:
                return None
    how = HowBuilt(compiled=tuple(compiled), kept=tuple(kept_decisions))
    return how if decisions else None


def _is_next(start: int, length: int, so_far: Sequence[int]) -> bool:
    return start + length <= MOST_NODES and (not so_far or start > so_far[-1])


def _runs(places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yields runs of neighbours: the first index of each run, and its length."""
    start, length = 0, 0
    for place in sorted(set(places)):
        if length and place == start + length:
            length += 1
            continue
        if length:
            yield start, length
        start, length = place, 1
    if length:
        yield start, length
