"""The rules for operations of maintenance only: pointers move by compare-and-swap, objects are
deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tunegate_cache.stores.rule import Rule, raises
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectNotFoundError,
    PointerMovedError,
    StoreUnavailableError,
)

_RACERS, _STEPS, _MAX_TRIES = 2, 10, 1_000
_MOVERS = 8
_WITHOUT_SWAP = "run compaction from one scheduled job only; results stay safe if two run at once"


def _swaps(store: MaintainedStore, place: str) -> str:
    name = f"{place}/HEAD"
    store.move_pointer(name, b"1", None)
    tag = store.read_pointer(name).tag
    store.move_pointer(name, b"2", tag)
    if _moves(store, name, b"3", tag) or _moves(store, name, b"4", None):
        return "a pointer moves from a version that is not there any more"
    read = store.read_pointer(name).body
    return "" if read == b"2" else f"the pointer was moved to 2, and says {read[:20]!r}"


def _moves_again(store: MaintainedStore, place: str) -> str:
    """Checks a move that the client sent again after a lost answer."""
    name = f"{place}/HEAD"
    store.move_pointer(name, b"1", None)
    store.move_pointer(name, b"1", store.read_pointer(name).tag)
    return "" if store.read_pointer(name).body == b"1" else "the pointer says something else"


def _one_mover(store: MaintainedStore, place: str) -> str:
    name = f"{place}/HEAD"
    store.move_pointer(name, b"start", None)
    tag = store.read_pointer(name).tag

    with ThreadPoolExecutor(_MOVERS) as pool:
        moved = pool.map(lambda mover: _moves(store, name, b"%d" % mover, tag), range(_MOVERS))
        winners = sum(moved)
    return "" if winners == 1 else f"{winners} of {_MOVERS} moved it from the same version"


def _counts(store: MaintainedStore, place: str) -> str:
    """Checks racing increments, none of which may be lost. A body names its racer, because moving a
    pointer to its current content is success."""
    name = f"{place}/counter"
    store.move_pointer(name, b"0 by nobody", None)
    with ThreadPoolExecutor(_RACERS) as pool:
        list(pool.map(lambda racer: _increment(store, name, racer), range(_RACERS)))
    counted, wanted = int(store.read_pointer(name).body.split()[0]), _RACERS * _STEPS
    return "" if counted == wanted else f"{wanted - counted} of {wanted} updates lost"


def _increment(store: MaintainedStore, name: str, racer: int) -> None:
    left = _STEPS
    for _ in range(_MAX_TRIES):
        pointer = store.read_pointer(name)
        number = int(pointer.body.split()[0]) + 1
        left -= _moves(store, name, b"%d by %d" % (number, racer), pointer.tag)
        if not left:
            return


def _moves(store: MaintainedStore, name: str, body: bytes, expected: str | None) -> bool:
    return not raises(PointerMovedError, lambda: store.move_pointer(name, body, expected))


def _deletes(store: MaintainedStore, place: str) -> str:
    name = f"{place}/a"
    store.write(name, b"x")
    try:
        store.delete(name)
        store.delete(name)
    except StoreUnavailableError as error:
        return str(error)
    if not raises(ObjectNotFoundError, lambda: store.read(name)) or store.names(name):
        return "a deleted object is still there"
    return ""


POINTER_RULES: tuple[Rule[MaintainedStore], ...] = (
    Rule(
        name="compares before it swaps (If-Match)",
        is_needed=False,
        problem=_swaps,
        advice=_WITHOUT_SWAP,
    ),
    Rule(name="takes an equal swap for success", is_needed=True, problem=_moves_again),
    Rule(
        name="lets one of racing swaps win",
        is_needed=False,
        problem=_one_mover,
        advice=_WITHOUT_SWAP,
    ),
    Rule(name="loses no racing swap", is_needed=False, problem=_counts, advice=_WITHOUT_SWAP),
    Rule(
        name="deletes",
        is_needed=False,
        problem=_deletes,
        advice="not with these credentials: only tunegate cache gc needs it",
    ),
)
