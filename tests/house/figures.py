"""Figures of the house, for one checkout or several beside each other.

`python -m tests.house.figures . ../before` prints them as a table.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house.import_graph import import_graph, longest_chain, propagation_cost
from tests.house.sources import SOURCE_ROOTS

_WIDTH = 26


def figures(checkout: Path) -> Mapping[str, str]:
    """Returns those of the product alone: no tests, no benchmarks."""
    paths = sorted(path for root in SOURCE_ROOTS for path in (checkout / root).rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in paths}
    graph = import_graph(checkout)
    lengths = sorted(length for tree in trees.values() for length in function_lines(tree))
    return {
        "files": f"{len(paths)}",
        "lines": f"{sum(len(path.read_text().splitlines()) for path in paths):,}",
        "folders": f"{len({path.parent for path in paths})}",
        "longest import chain": f"{len(longest_chain(graph))}",
        "propagation cost": f"{propagation_cost(graph):.1%}",
        "duplicate public names": f"{len(duplicate_names(trees))}",
        "lines of a function, p50": f"{lengths[len(lengths) // 2]}",
        "lines of a function, p95": f"{lengths[len(lengths) * 95 // 100]}",
    }


def function_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def duplicate_names(trees: Mapping[Path, ast.Module]) -> Mapping[str, list[Path]]:
    """The public classes, functions and constants that several modules define, and where."""
    defined: dict[str, list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for name in sorted(set(_public_names(tree))):
            defined[name].append(path)
    return {name: paths for name, paths in defined.items() if len(paths) > 1}


def _public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)][:1]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def main(checkouts: list[str]) -> None:
    columns = [figures(Path(checkout)) for checkout in checkouts]
    print(f"| {'':{_WIDTH}} | {' | '.join(checkouts)} |")
    print(f"|---|{'--:|' * len(columns)}")
    for row in columns[0]:
        print(f"| {row:{_WIDTH}} | {' | '.join(column[row] for column in columns)} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ["."])
