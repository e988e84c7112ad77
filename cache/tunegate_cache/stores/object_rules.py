"""The rules for a store's objects: written once, read as a whole or in part, listed by prefix."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tunegate_cache.stores.rule import Rule, raises
from tunegate_cache.stores.store import ObjectConflictError, ObjectNotFoundError, ObjectStore

_RACERS, _ROUNDS = 8, 4
_BODY = b"0123456789"
_WITHOUT_CREATION = (
    "objects can be overwritten: forbid it by policy, or keep the zone to one writer"
)


def _reads(store: ObjectStore, place: str) -> str:
    for name, body in (("a", _BODY), ("deep/b", b"\x00\xff"), ("empty", b"")):
        store.write(f"{place}/{name}", body)
        read = store.read(f"{place}/{name}")
        if read != body:
            return f"{body!r} was written, {read[:20]!r} is read"
    return ""


def _knows_what_is_missing(store: ObjectStore, place: str) -> str:
    for what, ask in (
        ("reading", lambda: store.read(f"{place}/nothing")),
        ("reading a part of", lambda: store.read_part(f"{place}/nothing", 0, 1)),
        ("reading the pointer", lambda: store.read_pointer(f"{place}/nothing")),
    ):
        if not raises(ObjectNotFoundError, ask):
            return f"{what} a missing object raises no ObjectNotFoundError"
    return ""


def _lists(store: ObjectStore, place: str) -> str:
    for name in ("n/2", "n/1", "n/deep/3", "n2/1", "other/1"):
        store.write(f"{place}/{name}", _BODY)
    for prefix, wanted in (
        ("n/", ["n/1", "n/2", "n/deep/3"]),
        ("n/d", ["n/deep/3"]),
        ("absent/", []),
    ):
        listed = list(store.names(f"{place}/{prefix}"))
        if listed != [f"{place}/{name}" for name in wanted]:
            return f"under {prefix} there are {wanted}, and {listed} are listed"
    return ""


def _reads_parts(store: ObjectStore, place: str) -> str:
    store.write(f"{place}/a", _BODY)
    for start, size, wanted in ((2, 3, b"234"), (8, 100, b"89"), (0, 10, _BODY)):
        part = store.read_part(f"{place}/a", start, size)
        if part != wanted:
            return f"{size} bytes from {start} are {wanted!r}, and {part[:20]!r} is read"
    return ""


def _writes_again(store: ObjectStore, place: str) -> str:
    """Checks a write that is sent again after a lost answer, also from many threads."""
    store.write(f"{place}/again", _BODY)
    store.write(f"{place}/again", _BODY)
    succeeded = _race(lambda _: store.write(f"{place}/race", _BODY))
    if not all(succeeded) or store.read(f"{place}/race") != _BODY:
        return f"{succeeded.count(False)} of {_RACERS} equal writes failed"
    return ""


def _creates_only(store: ObjectStore, place: str) -> str:
    store.write(f"{place}/a", _BODY)
    if not raises(ObjectConflictError, lambda: store.write(f"{place}/a", b"another body")):
        return "another body is accepted under a name that is taken"
    return "" if store.read(f"{place}/a") == _BODY else "the first body is lost"


def _one_creator(store: ObjectStore, place: str) -> str:
    winners = [_winners(store, f"{place}/race{number}") for number in range(_ROUNDS)]
    return "" if winners == [1] * _ROUNDS else f"winners by round: {winners}"


def _winners(store: ObjectStore, name: str) -> int:
    return sum(_race(lambda racer: store.write(name, b"%d" % racer)))


def _race(act: Callable[[int], object]) -> list[bool]:
    """Returns which of the racers succeeded."""
    barrier = threading.Barrier(_RACERS)

    def race(number: int) -> bool:
        barrier.wait()
        return not raises(ObjectConflictError, lambda: act(number))

    with ThreadPoolExecutor(_RACERS) as pool:
        return list(pool.map(race, range(_RACERS)))


OBJECT_RULES: tuple[Rule[ObjectStore], ...] = (
    Rule(name="reads what was written", is_needed=True, problem=_reads),
    Rule(name="says what is missing", is_needed=True, problem=_knows_what_is_missing),
    Rule(name="lists what was written", is_needed=True, problem=_lists),
    Rule(name="reads parts of objects", is_needed=True, problem=_reads_parts),
    Rule(name="takes an equal write for success", is_needed=True, problem=_writes_again),
    Rule(
        name="refuses to overwrite (If-None-Match)",
        is_needed=False,
        problem=_creates_only,
        advice=_WITHOUT_CREATION,
    ),
    Rule(
        name="lets one of racing writers win",
        is_needed=False,
        problem=_one_creator,
        advice=_WITHOUT_CREATION,
    ),
)
