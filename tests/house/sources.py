"""Our own Python files, and the functions in them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_ROOTS = ("action", "plugin", "cache")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if "node_modules" not in path.parts)


PRODUCT = [path for path in python_files(*SOURCE_ROOTS) if "tests" not in path.parts]
OURS = python_files(*SOURCE_ROOTS, "tests", "benchmarks", "research", "examples")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def packages(part: str) -> list[str]:
    return [p.name for p in (ROOT / part).iterdir() if (p / "__init__.py").exists()]
