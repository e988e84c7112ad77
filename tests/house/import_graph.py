"""Which of our modules import which while they are imported themselves: what an import inside a
function brings comes later, and does not count."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house.sources import SOURCE_ROOTS

ImportGraph = Mapping[str, frozenset[str]]


def import_graph(checkout: Path) -> ImportGraph:
    files = dict(_modules(checkout))
    return {name: frozenset(_imported(path, files)) - {name} for name, path in files.items()}


def longest_chain(graph: ImportGraph) -> tuple[str, ...]:
    """The modules of the longest way from one that imports to one that imports nothing of ours."""
    chains: dict[str, tuple[str, ...]] = {}

    def chain_from(module: str) -> tuple[str, ...]:
        if module not in chains:
            below = (chain_from(imported) for imported in sorted(graph[module]))
            chains[module] = (module, *max(below, key=len, default=()))
        return chains[module]

    return max((chain_from(module) for module in sorted(graph)), key=len, default=())


def propagation_cost(graph: ImportGraph) -> float:
    """The share of all modules that a change reaches on average: the module itself and whatever
    imports it, through others too."""
    reached: dict[str, frozenset[str]] = {}

    def reached_from(module: str) -> frozenset[str]:
        if module not in reached:
            below = (reached_from(imported) for imported in graph[module])
            reached[module] = frozenset({module}).union(*below)
        return reached[module]

    return sum(len(reached_from(module)) for module in graph) / len(graph) ** 2


def _modules(checkout: Path) -> Iterator[tuple[str, Path]]:
    for folder in SOURCE_ROOTS:
        for path in sorted((checkout / folder).rglob("*.py")):
            parts = path.relative_to(checkout / folder).with_suffix("").parts
            if parts[0].startswith("tunegate"):
                yield ".".join(parts).removesuffix(".__init__"), path


def _imported(path: Path, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield from [name for name in (inside, node.module) if name in files][:1]
