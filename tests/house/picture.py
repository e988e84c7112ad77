"""The picture of ARCHITECTURE.md, made from the imports: `make picture` draws it again.

A room is a package, or what ROOMS gathers. An arrow means "imports"; what follows from other arrows
is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import grimp

from tests.house.sources import ROOT

PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- picture: made by `make picture` -->\n", "<!-- end of the picture -->\n"
PARTS = {"tunegate_action": "action", "tunegate": "plugin", "tunegate_cache": "cache"}
COMPOSITION = ("wiring", "project", "pipeline", "handover", "waivers", "cache_admin")
GROUND = (
    *(
        "artifact_io",
        "bench_ports",
        "config",
        "config_key",
        "digests",
        "errors",
        "given_rules",
        "globs",
    ),
    *(
        "input_shapes",
        "isolation",
        "plurals",
        "wording",
        "ports",
        "redaction",
        "regular_files",
        "selection",
        "settings",
    ),
    *("fitted_markdown", "known_extras", "symbol_sums"),
)
ROOMS = {
    "tunegate.edges.metaschedule": "tunegate.edges.metaschedule",
    "tunegate_cache.installed_plugins": "tunegate_cache.format",
    "tunegate.__main__": "tunegate.cli",
    "tunegate.upgrades": "tunegate.tools",
    **{f"tunegate.{name}": "tunegate.wiring" for name in COMPOSITION},
    **{f"tunegate.{name}": "tunegate.ports" for name in GROUND},
}
PURPOSES = {
    "tunegate_action": "what the GitHub Action is given",
    "tunegate.cli": "options, help and exit codes",
    "tunegate.ci_job": "a command in a CI job: who is told what",
    "tunegate.ci_hosts": "each CI a folder: event, report, comment",
    "tunegate.commands": "what each command does",
    "tunegate.wiring": "the parts of a run, put together: wiring, pipeline",
    "tunegate.stages": "the steps of a run, one file each",
    "tunegate.sides": "what is compared with what",
    "tunegate.measuring": "launches, until they decide",
    "tunegate.verdict": "checks, severity, advice",
    "tunegate.policy": "whose rules count: base, head, waivers",
    "tunegate.gate": "the statistics",
    "tunegate.tuning": "the policies: what to tune next, when to stop",
    "tunegate.revalidation": "records of others, measured again",
    "tunegate.selftest": "which margin a machine can decide",
    "tunegate.run_history": "what is kept of a run",
    "tunegate.render": "Markdown, HTML, JUnit, SARIF, plots",
    "tunegate.runtimes": "TVM, ONNX Runtime: build, load, profile",
    "tunegate.engine": "the tuning loop and its workers",
    "tunegate.cost_model": "which candidates are likely fast",
    "tunegate.edges": "git, files, processes, devices, launches",
    "tunegate.edges.metaschedule": "spaces, search, candidates, builds",
    "tunegate.tools": "what a run works with",
    "tunegate.artifacts": "the nouns: what one step hands to the next",
    "tunegate.ports": "config, errors and what every room may use",
    "tunegate_cache.maintenance": "compaction, collection, fsck",
    "tunegate_cache.protocol": "look-up and upload",
    "tunegate_cache.stores": "S3, a directory, memory",
    "tunegate_cache.format": "records, segments, signatures",
}
"""What each room is for. A new room needs a line."""
OUTSIDE = {
    "tvm": "TVM",
    "onnxruntime": "ONNX Runtime",
    "boto3": "S3",
    "pynvml": "NVML",
    "cupti": "CUPTI",
}

Arrows = dict[str, set[str]]


def picture() -> str:
    graph = grimp.build_graph(*PARTS, include_external_packages=True)
    arrows: Arrows = {room: set() for room in map(room_of, filter(is_ours, graph.modules)) if room}
    doors = set()
    for module in filter(room_of, filter(is_ours, graph.modules)):
        for imported in graph.find_modules_directly_imported_by(module):
            if imported in OUTSIDE:
                doors.add((room_of(module), imported))
            elif is_ours(imported) and room_of(imported):
                arrows[room_of(module)].add(room_of(imported))
    unknown = set(arrows) ^ set(PURPOSES)
    assert not unknown, f"rooms that are gone, or have no purpose: {sorted(unknown)}"
    return mermaid(reduced(arrows), doors)


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in PARTS


def room_of(module: str) -> str:
    """Returns the room that a module is in: the longest name that is given one, or its package.
    The roots of the packages are in none."""
    names = module.split(".")
    for length in range(len(names), 1, -1):
        room = ROOMS.get(".".join(names[:length]))
        if room is not None:
            return room
    return names[0] if names[0] == "tunegate_action" else ".".join(names[:2]) * (len(names) > 1)


def reduced(arrows: Mapping[str, Iterable[str]]) -> Arrows:
    """Returns the arrows that do not follow from others."""
    below = {room: reached(room, arrows) for room in arrows}
    cycles = [room for room, rooms in below.items() if room in rooms]
    assert not cycles, f"rooms that import each other: {cycles}"
    return {
        room: {
            target
            for target in set(targets) - {room}
            if not any(target in below[other] for other in set(targets) - {room, target})
        }
        for room, targets in arrows.items()
    }


def reached(start: str, arrows: Mapping[str, Iterable[str]]) -> set[str]:
    """Returns every room that is imported, by whatever way."""
    found: set[str] = set()
    waiting = [target for target in arrows[start] if target != start]
    while waiting:
        room = waiting.pop()
        if room not in found:
            found.add(room)
            waiting += [target for target in arrows[room] if target != room]
    return found


def mermaid(arrows: Arrows, doors: Iterable[tuple[str, str]]) -> str:
    lines = ["```mermaid", "flowchart TD"]
    for package, part in PARTS.items():
        lines.append(f"  subgraph {part}")
        lines += [f"    {box(room)}" for room in PURPOSES if room.partition(".")[0] == package]
        lines.append("  end")
    for room in PURPOSES:
        below = [name_of(target) for target in PURPOSES if target in arrows[room]]
        outside = sorted(
            f"{door}(({OUTSIDE[door]}))" for owner, door in set(doors) if owner == room
        )
        lines += [f"  {name_of(room)} --> {' & '.join(below)}"] if below else []
        lines += [f"  {name_of(room)} -.-> {' & '.join(outside)}"] if outside else []
    return "\n".join([*lines, "```", ""])


def name_of(room: str) -> str:
    if room == "tunegate_action":
        return "tunegate_action"
    return room.partition(".")[2].replace(".", "/")


def box(room: str) -> str:
    return f'{name_of(room)}["<b>{name_of(room)}</b><br>{PURPOSES[room]}"]'


def page_with(drawn: str) -> str:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + drawn + END + after


if __name__ == "__main__":
    PAGE.write_text(page_with(picture()))
