"""Counts how often a walk of `tunegate run` climbs back to an earlier room.

    python -m research.climbs          # the table
    python -m research.climbs --list   # and each climb

The walk follows every name of the core that a reached function, class or constant uses, from
`cli.handlers.run.run` on. Annotations are left out: they call nothing. The rooms have the order of
ARCHITECTURE.md; a climb is a pair of names, the second in an earlier room than the first. Modules
outside of rooms (`pipeline`, `wiring`, `ports`, ...) have no place in the order.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "tunegate": ROOT / "plugin" / "tunegate",
    "tunegate_cache": ROOT / "cache" / "tunegate_cache",
}
ROOMS = (
    *("cli", "ci", "review", "plan", "tune", "compiler", "runtimes"),
    *("models", "measure", "decide", "report", "system", "artifacts"),
)


class Name(NamedTuple):
    """A name of a module's top level."""

    module: str
    name: str

    @property
    def room(self) -> str:
        return f"{self.module}..".split(".")[1]

    def __str__(self) -> str:
        return f"{self.module.partition('.')[2]}.{self.name}"


class Climb(NamedTuple):
    """A use of an earlier room's name."""

    user: Name
    used: Name

    @property
    def rooms(self) -> str:
        return f"{self.user.room} -> {self.used.room}"


class Names:
    """The top-level names of all modules, and what each module imports of them."""

    def __init__(self) -> None:
        trees = {
            ".".join((package, *_parts(file.relative_to(root)))): ast.parse(file.read_text())
            for package, root in PACKAGES.items()
            for file in sorted(root.rglob("*.py"))
        }
        self.defined = {module: dict(_definitions(tree)) for module, tree in trees.items()}
        self._imported = {module: dict(self._imports(tree)) for module, tree in trees.items()}

    def _imports(self, tree: ast.Module) -> Iterator[tuple[str, str | Name]]:
        """Yields each local name with the module or the name that it stands for."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    target = whole if whole in self.defined else Name(node.module, alias.name)
                    yield alias.asname or alias.name, target

    def used_by(self, name: Name) -> Iterator[Name]:
        """Yields the names that a definition uses."""
        imported, tree = self._imported[name.module], self.defined[name.module][name.name]
        for node in _without_annotations(tree):
            target: str | Name | None = None
            if isinstance(node, ast.Name):
                target = imported.get(node.id, Name(name.module, node.id))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = imported.get(node.value.id)
                target = Name(module, node.attr) if isinstance(module, str) else None
            if isinstance(target, Name) and target.name in self.defined.get(target.module, {}):
                yield target


def _parts(file: Path) -> tuple[str, ...]:
    parts = file.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Assign(targets=targets):
                yield from ((each.id, node) for each in targets if isinstance(each, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case _:
                pass


def _without_annotations(tree: ast.AST) -> Iterator[ast.AST]:
    yield tree
    for field, value in ast.iter_fields(tree):
        if field not in {"annotation", "returns"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _without_annotations(child)


def climbs() -> list[Climb]:
    """Returns the climbs of the walk, each once."""
    names = Names()
    to_visit, reached = [Name("tunegate.cli.handlers.run", "run")], set[Name]()
    found = set[Climb]()
    while to_visit:
        name = to_visit.pop()
        if name in reached:
            continue
        reached.add(name)
        for used in names.used_by(name):
            to_visit.append(used)
            is_placed = name.room in ROOMS and used.room in ROOMS
            if is_placed and ROOMS.index(used.room) < ROOMS.index(name.room):
                found.add(Climb(name, used))
    return sorted(found)


if __name__ == "__main__":
    every = climbs()
    lines = [f"{len(every)} climbs"]
    lines += [f"{n:4} {rooms}" for rooms, n in Counter(c.rooms for c in every).most_common()]
    if "--list" in sys.argv:
        lines += [f"{climb.user} -> {climb.used}" for climb in every]
    sys.stdout.write("\n".join(lines) + "\n")
