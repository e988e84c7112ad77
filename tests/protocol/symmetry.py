"""Worlds that differ in who is who alone are one world.

Writers differ in their number only, compactors in nothing. Where two writers look alike from
outside, either order is taken: that may keep two equal worlds apart, but never takes two different
ones for one.
"""

from tests.protocol.model import Archives, Head, Process, Set, World


def representative(world: World) -> World:
    writers = [p for p in world.processes if p.kind == "writer"]
    ordered = sorted(writers, key=lambda p: _looks(world, p))
    if ordered != writers:
        world = _renamed(world, {p.number: place for place, p in enumerate(ordered)})
    others = [p for p in world.processes if p.kind != "writer"]
    ranked = sorted(others, key=lambda p: (p.kind, hash(p)))
    numbered = sorted((p for p in world.processes if p.kind == "writer"), key=lambda p: p.number)
    return world._replace(processes=(*numbered, *ranked))


def _looks(world: World, writer: Process) -> tuple[str, tuple[int, ...]]:
    number = writer.number
    sets = [world.segments, world.acknowledged, world.head.covers]
    seen = [number in s for s in sets]
    archives = [sum(number in a for a in group) for group in (world.archives, world.head.archives)]
    remembered = [0] * 5
    for process in world.processes:
        if process.kind != "writer":
            holds = (process.listed, process.gathered, process.wanted, process.head.covers)
            weight = 1 + len(process.kind) + 16 * len(process.step)
            for place, held in enumerate((*holds, process.head.contents)):
                remembered[place] += weight * (number in held)
    return writer.step, (*seen, *archives, *remembered)


def _renamed(world: World, names: dict[int, int]) -> World:
    def members(numbers: Set) -> Set:
        return frozenset(names[n] for n in numbers)

    def groups(archives: Archives) -> Archives:
        return frozenset(members(a) for a in archives)

    def head(old: Head) -> Head:
        return Head(old.version, groups(old.archives), members(old.covers))

    def process(old: Process) -> Process:
        return Process(
            old.kind,
            old.step,
            names[old.number] if old.kind == "writer" else old.number,
            members(old.listed),
            groups(old.standing),
            head(old.head),
            members(old.gathered),
            members(old.wanted),
        )

    return World(
        members(world.segments),
        groups(world.archives),
        head(world.head),
        members(world.acknowledged),
        tuple(process(p) for p in world.processes),
    )
