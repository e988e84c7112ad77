"""The cache's protocol as a model small enough to look at every interleaving of it.

A process takes one step for each call of the store. A crash needs no step of its own: it is a
process that is never given another turn, and what must hold is checked after every step.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

Set = frozenset[int]
Archives = frozenset[Set]
_NOTHING: Set = frozenset()
_MAX_ATTEMPTS = 3


class Variant(NamedTuple):
    """A choice of rules. The defaults are the product's."""

    atomic_swap: bool = True
    recovers: bool = True
    reads: Literal["list, head", "head, list"] = "list, head"
    collects: Literal["archived", "inputs"] = "archived"
    """`inputs` deletes what a compaction has gathered before HEAD has moved."""
    stores: Literal["segments", "one object", "one object, unchecked"] = "segments"
    """One object is what many caches do: read all, add, write all back."""


class Bounds(NamedTuple):
    writers: int = 2
    compactors: int = 2
    rounds: int = 1
    collectors: int = 1
    readers: int = 1


class Head(NamedTuple):
    version: int
    archives: Archives
    covers: Set

    @property
    def contents(self) -> Set:
        return frozenset().union(*self.archives)


class Process(NamedTuple):
    """`step` is what it does next; the rest is what it remembers."""

    kind: Literal["writer", "compactor", "collector", "reader"]
    step: str
    number: int = 0
    listed: Set = _NOTHING
    standing: Archives = frozenset()
    head: Head = Head(0, frozenset(), _NOTHING)
    gathered: Set = _NOTHING
    wanted: Set = _NOTHING


class World(NamedTuple):
    segments: Set
    archives: Archives
    head: Head
    acknowledged: Set
    processes: tuple[Process, ...]


class Found(NamedTuple):
    """`violation` is empty when none of the states breaks a promise; else `trace` is a shortest way
    there."""

    states: int
    violation: str
    trace: tuple[str, ...]


def explore(
    variant: Variant,
    bounds: Bounds,
    most_states: int = 5_000_000,
    representative: Callable[[World], World] = lambda world: world,
) -> Found:
    """Breadth first over every interleaving, of the worlds that `representative` keeps apart.
    Raises OverflowError beyond `most_states`."""
    first = representative(_first(bounds))
    came_from: dict[World, tuple[World, str] | None] = {first: None}
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        for name, after, problem in _steps(world, variant):
            broken = problem or _broken_promise(world, after, variant)
            if broken:
                return Found(len(came_from), broken, (*_way(came_from, world), name))
            following = representative(after)
            if following not in came_from:
                came_from[following] = (world, name)
                waiting.append(following)
        if len(came_from) > most_states:
            raise OverflowError(most_states)
    return Found(len(came_from), "", ())


def _first(bounds: Bounds) -> World:
    processes = [Process("writer", "put", number) for number in range(bounds.writers)]
    processes += [Process("compactor", "list", bounds.rounds)] * bounds.compactors
    processes += [Process("collector", "list")] * bounds.collectors
    processes += [Process("reader", "begin")] * bounds.readers
    return World(_NOTHING, frozenset(), Head(0, frozenset(), _NOTHING), _NOTHING, tuple(processes))


def _broken_promise(before: World, after: World, variant: Variant) -> str:
    held = after.segments | after.head.contents
    if variant.recovers:
        held = held.union(*after.archives)
    if not after.acknowledged <= held:
        return "an acknowledged record is lost"
    is_checked = variant.atomic_swap and variant.stores != "one object, unchecked"
    if is_checked and after.head.version < before.head.version:
        return "HEAD went back"
    return ""


def _way(came_from: dict[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    way: list[str] = []
    while (step := came_from[world]) is not None:
        world, name = step
        way.append(name)
    return tuple(reversed(way))


def _steps(world: World, variant: Variant) -> Iterator[tuple[str, World, str]]:
    for index, process in enumerate(world.processes):
        for following, changed, problem in _STEPS[process.kind](world, process, variant):
            processes = list(world.processes)
            processes[index] = following
            name = f"{process.kind} {index}: {process.step}"
            yield name, changed._replace(processes=tuple(processes)), problem


Steps = Iterator[tuple[Process, World, str]]


def _write(world: World, process: Process, variant: Variant) -> Steps:
    """A segment is create-only, so putting it again after a lost answer changes nothing."""
    if variant.stores != "segments":
        yield from _rewrite(world, process, variant)
        return
    me = frozenset({process.number})
    stored = world._replace(segments=world.segments | me)
    acknowledged = stored._replace(acknowledged=world.acknowledged | me)
    if process.step == "put":
        yield process._replace(step="done"), acknowledged, ""
        yield process._replace(step="put again"), stored, ""
    elif process.step == "put again":
        # Perhaps it was compacted and collected in between: then it stands beside its archive.
        yield process._replace(step="done"), acknowledged, ""


def _rewrite(world: World, process: Process, variant: Variant) -> Steps:
    """Read one object that holds everything, and write it back with one record more."""
    moved = world.head.version != process.head.version
    is_checked = variant.stores == "one object"
    match process.step:
        case "put":
            step = "check" if is_checked and not variant.atomic_swap else "write"
            yield process._replace(step=step, head=world.head), world, ""
        case "check":
            yield process._replace(step="put" if moved else "write"), world, ""
        case "write" if is_checked and variant.atomic_swap and moved:
            yield process._replace(step="put"), world, ""
        case "write":
            all_records = process.head.contents | {process.number}
            head = Head(process.head.version + 1, frozenset({all_records}), _NOTHING)
            acknowledged = world.acknowledged | {process.number}
            yield (
                process._replace(step="done"),
                world._replace(head=head, acknowledged=acknowledged),
                "",
            )
        case _:
            return


def _compact(world: World, process: Process, variant: Variant) -> Steps:
    match process.step:
        case "list":
            now = process._replace(step="read head", listed=world.segments, standing=world.archives)
            yield now, world, ""
        case "read head":
            yield process._replace(step="gather", head=world.head), world, ""
        case "gather":
            fresh = (process.listed - process.head.covers) & world.segments
            gathered = world._replace(archives=world.archives | {fresh}) if fresh else world
            if variant.collects == "inputs":
                gathered = gathered._replace(segments=world.segments - fresh)
            step = "move head" if variant.atomic_swap else "check"
            yield process._replace(step=step, gathered=fresh), gathered, ""
        case "check":
            step = "move head" if world.head.version == process.head.version else "done"
            yield process._replace(step=step), world, ""
        case "move head":
            if variant.atomic_swap and world.head.version != process.head.version:
                yield _next_round(process), world, ""
                return
            yield _next_round(process), world._replace(head=_new_head(process, variant)), ""
        case _:
            return


def _new_head(process: Process, variant: Variant) -> Head:
    archives = process.head.archives | ({process.gathered} if process.gathered else frozenset())
    if variant.recovers:
        archives |= process.standing
    covers = process.gathered | (process.head.covers & process.listed)
    return Head(process.head.version + 1, archives, covers)


def _next_round(process: Process) -> Process:
    left = process.number - 1
    return Process("compactor", "list" if left else "done", left)


def _collect(world: World, process: Process, variant: Variant) -> Steps:
    """The step "delete" is repeated for each segment."""
    match process.step:
        case "list":
            yield process._replace(step="read head", listed=world.segments), world, ""
        case "read head":
            head = world.head
            doomed = process.listed & head.covers & head.contents
            step = "delete" if doomed and variant.collects == "archived" else "done"
            yield process._replace(step=step, head=head, gathered=doomed), world, ""
        case "delete":
            for segment in process.gathered:
                left = process.gathered - {segment}
                step = "delete" if left else "done"
                deleted = world._replace(segments=world.segments - {segment})
                yield process._replace(step=step, gathered=left), deleted, ""
        case _:
            return


def _read(world: World, process: Process, variant: Variant) -> Steps:
    first, second = (
        ("list", "read head") if variant.reads == "list, head" else ("read head", "list")
    )
    after = {first: second, second: "get"}
    match process.step:
        case "begin":
            yield process._replace(step=first, wanted=world.acknowledged), world, ""
        case "list":
            yield process._replace(step=after["list"], listed=world.segments), world, ""
        case "read head":
            yield process._replace(step=after["read head"], head=world.head), world, ""
        case "get":
            fresh = process.listed - process.head.covers
            attempts = process.number + 1
            if not fresh <= world.segments and attempts < _MAX_ATTEMPTS:
                yield process._replace(step=first, number=attempts), world, ""
                return
            seen = (fresh & world.segments) | process.head.contents
            is_gap = variant.atomic_swap and not process.wanted <= seen
            problem = "a reader misses what was acknowledged before" if is_gap else ""
            yield process._replace(step="done"), world, problem
        case _:
            return


_STEPS = {"writer": _write, "compactor": _compact, "collector": _collect, "reader": _read}
