"""Checks by doing whether a store keeps the protocol's promises: for `tunegate cache probe`, and
for the tests of a store's author."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.stores.gather_with_deadline import Trouble, gather_with_deadline
from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    PointerMovedError,
    StoreTimedOutError,
    StoreUnavailableError,
)

# A promise of a store, checked by doing it.

_T = TypeVar("_T")
Store_contra = TypeVar("Store_contra", contravariant=True)


class Rule(msgspec.Struct, Generic[Store_contra], frozen=True, kw_only=True):
    """`problem` acts on objects under a prefix of the store, and returns what is wrong, '' if the
    rule is kept. Without the needed rules the cache cannot work; without the others it works, and
    `advice` says what to mind."""

    name: str
    is_needed: bool
    problem: Callable[[Store_contra, str], str]
    advice: str = ""


def raises(kind: type[Exception], act: Callable[[], object]) -> bool:
    """Returns whether `act` raises this exception."""
    try:
        act()
    except kind:
        return True
    return False


# The rules for a store's objects: written once, read as a whole or in part, listed by prefix.

_RACERS, _ROUNDS = 8, 4
_RACE_SECONDS = 120.0
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
    for prefix, expected in (
        ("n/", ["n/1", "n/2", "n/deep/3"]),
        ("n/d", ["n/deep/3"]),
        ("absent/", []),
    ):
        names = list(store.names(f"{place}/{prefix}"))
        if names != [f"{place}/{name}" for name in expected]:
            return f"under {prefix} there are {expected}, and {names} are listed"
    return ""


def _reads_parts(store: ObjectStore, place: str) -> str:
    store.write(f"{place}/a", _BODY)
    store.write(f"{place}/empty", b"")
    for name, start, size, expected in (
        ("a", 2, 3, b"234"),
        ("a", 8, 100, b"89"),
        ("a", 0, 10, _BODY),
        ("a", 10, 5, b""),
        ("empty", 0, 5, b""),
    ):
        part = store.read_part(f"{place}/{name}", start, size)
        if part != expected:
            return f"{size} bytes from {start} are {expected!r}, and {part[:20]!r} is read"
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

    return _at_once(race, _RACERS)


def _at_once(act: Callable[[int], _T], count: int) -> list[_T]:
    """Returns what so many threads return. A cancelled command does not wait for them. Raises
    StoreTimedOutError, and what the store raises."""
    deadline = time.monotonic() + _RACE_SECONDS
    requests = {number: partial(act, number) for number in range(count)}
    results: list[_T] = []
    for _, answer in gather_with_deadline(requests, deadline=deadline, monotonic=time.monotonic):
        if isinstance(answer, Trouble):
            raise answer
        results.append(answer)
    if len(results) < count:
        raise StoreTimedOutError(f"{count} requests at once take more than {_RACE_SECONDS:.0f} s")
    return results


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


# The rules for operations of maintenance only: pointers move by compare-and-swap, objects are
# deleted.

_COUNTERS, _STEPS, _MAX_TRIES = 2, 10, 50
_MOST_DIGITS = 9
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

    winners = sum(_at_once(lambda mover: _moves(store, name, b"%d" % mover, tag), _MOVERS))
    return "" if winners == 1 else f"{winners} of {_MOVERS} moved it from the same version"


def _counts(store: MaintainedStore, place: str) -> str:
    """Checks racing increments, none of which may be lost. A body names its racer, because moving a
    pointer to its current content is success."""
    name = f"{place}/counter"
    store.move_pointer(name, b"0 by nobody", None)
    _at_once(lambda racer: _increment(store, name, racer), _COUNTERS)
    counted, expected = _number(store.read_pointer(name).body), _COUNTERS * _STEPS
    return "" if counted == expected else f"{expected - counted} of {expected} updates lost"


def _increment(store: MaintainedStore, name: str, racer: int) -> None:
    steps_left = _STEPS
    for _ in range(_MAX_TRIES):
        pointer = store.read_pointer(name)
        number = _number(pointer.body) + 1
        steps_left -= _moves(store, name, b"%d by %d" % (number, racer), pointer.tag)
        if not steps_left:
            return


def _number(body: bytes) -> int:
    """Returns the number that the body begins with, 0 for what no racer has written."""
    digits = body.partition(b" ")[0]
    return int(digits) if digits.isdigit() and len(digits) < _MOST_DIGITS else 0


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


STORE_RULES: tuple[Rule[MaintainedStore], ...] = (*OBJECT_RULES, *POINTER_RULES)


class GuaranteeResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one promise. `needed` ones must be ok for the cache to work at all; without
    the others it works, and `detail` has the precautions."""

    name: str
    ok: bool
    needed: bool
    detail: str = ""


def probe(store: MaintainedStore) -> tuple[GuaranteeResult, ...]:
    """Writes under `ms1/probe/` and deletes it again. Raises StoreUnavailableError if the store
    does not answer; odd answers are findings."""
    place = f"{OBJECT_ROOT}/probe/{secrets.token_hex(8)}"
    try:
        return tuple(_findings(store, place))
    finally:
        _remove(store, place)


def _problem(rule: Rule[Any], store: MaintainedStore, place: str) -> str:
    """Returns the rule's problem, also where the store ends its check before it ends itself."""
    try:
        return rule.problem(store, place)
    except ObjectNotFoundError:
        return "what was just written is not there"
    except ObjectConflictError as error:
        return f"a new name is refused as one that is taken ({error})"
    except PointerMovedError:
        return "a pointer does not move from the version that is there"


def reading_problem(store: MaintainedStore) -> str:
    """Returns what is wrong where the store returns something other than was written, '' if it
    returns that. Raises StoreUnavailableError."""
    place = f"{OBJECT_ROOT}/probe/{secrets.token_hex(8)}"
    try:
        return _problem(OBJECT_RULES[0], store, place)
    finally:
        _remove(store, place)


def _remove(store: MaintainedStore, place: str) -> None:
    with suppress(StoreUnavailableError):
        for name in store.names(f"{place}/"):
            store.delete(name)


def _findings(store: MaintainedStore, place: str) -> Iterator[GuaranteeResult]:
    for number, rule in enumerate(STORE_RULES):
        problem = _problem(rule, store, f"{place}/{number}")
        parts = (problem, rule.advice) if problem else ()
        yield GuaranteeResult(
            name=rule.name,
            ok=not problem,
            needed=rule.is_needed,
            detail="; ".join(part for part in parts if part),
        )
    for remark in getattr(store, "remarks", ()):
        yield GuaranteeResult(
            name="implements what is asked", ok=False, needed=False, detail=remark
        )
