"""Does a store keep the promises that the protocol would like to lean on? Asked by doing."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

from tunegate_cache.format.names import ROOT
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    PointerMovedError,
    StoreUnavailableError,
)

_RACERS, _ROUNDS = 8, 4
_STEPS = 10


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`needed` findings must be ok for the cache to work at all; without the others it works, and
    `detail` says what to mind."""

    name: str
    ok: bool
    needed: bool
    detail: str = ""


def probe(store: MaintainedStore) -> tuple[Finding, ...]:
    """Writes under `ms1/probe/` and deletes it again. Raises StoreUnavailableError where the store
    does not answer; a store that only answers oddly is a finding."""
    place = f"{ROOT}/probe/{secrets.token_hex(8)}"
    try:
        return tuple(_findings(store, place))
    finally:
        with suppress(StoreUnavailableError):
            for name in store.names(f"{place}/"):
                store.delete(name)


def _findings(store: MaintainedStore, place: str) -> Iterator[Finding]:
    store.write(f"{place}/a", b"0123456789")
    yield Finding(
        name="reads what was written",
        ok=store.read(f"{place}/a") == b"0123456789",
        needed=True,
    )
    yield Finding(
        name="lists what was written",
        ok=list(store.names(f"{place}/")) == [f"{place}/a"],
        needed=True,
    )
    yield Finding(
        name="reads parts of objects",
        ok=store.read_part(f"{place}/a", 2, 3) == b"234",
        needed=True,
    )
    yield _create_only(store, f"{place}/a")
    yield _one_creator(store, place)
    yield _swap(store, f"{place}/HEAD")
    yield _counter(store, f"{place}/counter")
    yield _deletes(store, f"{place}/a")


_WITHOUT_CREATION = (
    "objects can be overwritten: forbid it by policy, or keep the zone to one writer"
)
_WITHOUT_SWAP = "run compaction from one scheduled job only; results stay safe if two run at once"


def _create_only(store: MaintainedStore, name: str) -> Finding:
    refused = _raises(ObjectConflictError, lambda: store.write(name, b"another body"))
    return Finding(
        name="refuses to overwrite (If-None-Match)",
        ok=refused and store.read(name) == b"0123456789",
        needed=False,
        detail="" if refused else _WITHOUT_CREATION,
    )


def _one_creator(store: MaintainedStore, place: str) -> Finding:
    """Racing writers of one name: exactly one may win."""
    winners = []
    for number in range(_ROUNDS):
        name = f"{place}/race{number}"
        winners.append(
            sum(_at_once(lambda racer, name=name: store.write(name, b"%d" % racer)))  # type: ignore[misc]
        )
    ok = winners == [1] * _ROUNDS
    detail = "" if ok else f"winners by round: {winners}; {_WITHOUT_CREATION}"
    return Finding(name="lets one of racing writers win", ok=ok, needed=False, detail=detail)


def _swap(store: MaintainedStore, name: str) -> Finding:
    store.move_pointer(name, b"1", None)
    tag = store.read_pointer(name).tag
    store.move_pointer(name, b"2", tag)
    stale = _raises(PointerMovedError, lambda: store.move_pointer(name, b"3", tag))
    absent = _raises(PointerMovedError, lambda: store.move_pointer(name, b"4", None))
    ok = stale and absent and store.read_pointer(name).body == b"2"
    return Finding(
        name="compares before it swaps (If-Match)",
        ok=ok,
        needed=False,
        detail="" if ok else _WITHOUT_SWAP,
    )


def _counter(store: MaintainedStore, name: str) -> Finding:
    """Checks racing increments, of which none may be lost. A body names its racer, because moving a
    pointer to what it says already is success."""
    store.move_pointer(name, b"0 by nobody", None)

    def count(racer: int) -> None:
        for _ in range(_STEPS):
            while True:
                pointer = store.read_pointer(name)
                number = int(pointer.body.split()[0]) + 1
                try:
                    store.move_pointer(name, b"%d by %d" % (number, racer), pointer.tag)
                    break
                except PointerMovedError:
                    continue

    _at_once(count, racers=2)
    counted, wanted = int(store.read_pointer(name).body.split()[0]), 2 * _STEPS
    ok = counted == wanted
    detail = "" if ok else f"{wanted - counted} of {wanted} updates lost; {_WITHOUT_SWAP}"
    return Finding(name="loses no racing swap", ok=ok, needed=False, detail=detail)


def _deletes(store: MaintainedStore, name: str) -> Finding:
    try:
        store.delete(name)
        gone = _raises(ObjectNotFoundError, lambda: store.read(name))
    except StoreUnavailableError:
        gone = False
    detail = "" if gone else "not with these credentials: only tunegate cache gc needs it"
    return Finding(name="deletes", ok=gone, needed=False, detail=detail)


def _at_once(act: Callable[[int], object], racers: int = _RACERS) -> list[bool]:
    """Returns whose act succeeded."""
    barrier = threading.Barrier(racers)

    def race(number: int) -> bool:
        barrier.wait()
        try:
            act(number)
        except ObjectConflictError:
            return False
        return True

    with ThreadPoolExecutor(racers) as pool:
        return list(pool.map(race, range(racers)))


def _raises(kind: type[Exception], act: Callable[[], object]) -> bool:
    try:
        act()
    except kind:
        return True
    return False
