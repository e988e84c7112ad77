"""Prints the sampled mutants of a source tree, one JSON object a line. It runs with Cosmic Ray's
packages alone: `PYTHONPATH=.mutation python -m research.mutation.mutants TREE`.

A mutant is named by the code that it changes, not by its place: a function that moves to another
file keeps its mutants, and a function that is rewritten has others. Which are sampled is decided by
a digest of that name, so that two trees share the mutants of all that is the same in both."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

SEED = "2026-11"
# A room: its folder, the tests that must notice, and the share of its places that is drawn.
ROOMS = {
    "decide": ("plugin/tunegate/decide", "tests/decide", 0.04),
    "review": ("plugin/tunegate/review", "tests/review", 0.035),
    "protocol": ("cache/tunegate_cache/protocol", "tests/cache", 0.07),
    "format": ("cache/tunegate_cache/format", "tests/cache", 0.055),
}
# What a decorator or a signature says is not evaluated, or is evaluated before any test.
SKIPPED_OPERATORS = ("RemoveDecorator", "ReplaceBinaryOperator_BitOr")


def main(tree: Path) -> None:
    for room, (folder, tests, share) in ROOMS.items():
        for path in sorted((tree / folder).rglob("*.py")):
            source = path.read_text("utf-8")
            for mutant in drawn_mutants(source, share):
                operator = get_operator(mutant["operator"])()
                try:
                    changed = mutate_code(source, operator, mutant.pop("occurrence"))
                except AttributeError:  # its ExceptionReplacer knows no dotted names
                    continue
                if changed is not None and _is_other_program(changed, source):
                    line = {"room": room, "tests": tests, "source": changed}
                    line |= {"path": str(path.relative_to(tree))}
                    sys.stdout.write(json.dumps(mutant | line) + "\n")


def drawn_mutants(source: str, share: float) -> Iterator[dict[str, Any]]:
    """Yields one mutant at most of each place: a comparison can be replaced by nine others."""
    places: dict[object, list[tuple[float, dict[str, Any]]]] = {}
    for position, mutant in mutants_of(source):
        places.setdefault(position, []).append((_ticket(mutant["name"]), mutant))
    for drawn in places.values():
        ticket, mutant = min(drawn, key=lambda each: each[0])
        # The least of n tickets is below share with this chance.
        if ticket < 1 - (1 - share) ** (1 / len(drawn)):
            yield mutant | {"ticket": ticket / share}


def _ticket(name: str) -> float:
    digest = hashlib.sha256(f"{SEED}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _is_other_program(changed: str, source: str) -> bool:
    """An operator takes the `*` of a signature for a product: such a text is no program."""
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def mutants_of(source: str) -> Iterator[tuple[object, dict[str, Any]]]:
    """Yields where each mutant is, and which occurrence of which operator makes it."""
    tree = ast.parse(source)
    signatures = tuple(_signature_spans(tree))
    nodes = tuple(ast_nodes(get_ast(source)))
    for operator_name in operator_names():
        operator_class = get_operator(operator_name)
        if operator_class.arguments() or any(each in operator_name for each in SKIPPED_OPERATORS):
            continue
        operator = operator_class()
        positions = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        met: Counter[str] = Counter()
        for occurrence, position in enumerate(positions):
            statement = _top_statement(tree, position[0])
            if statement is None or any(low <= position < high for low, high in signatures):
                continue
            where = getattr(statement, "name", "module")
            digest = hashlib.sha256(_code(statement).encode()).hexdigest()[:12]
            met[where + digest] += 1
            name = f"{where}:{digest}:{operator_name}:{met[where + digest]}"
            mutant = {"name": name, "operator": operator_name, "line": position[0]}
            yield position, mutant | {"occurrence": occurrence}


@functools.cache
def _code(statement: ast.stmt) -> str:
    """Returns the statement without comments, layout and docstrings."""
    copy = ast.parse(ast.unparse(statement))
    for node in ast.walk(copy):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body[0] = ast.Pass()
    return ast.unparse(copy)


def _top_statement(tree: ast.Module, line: int) -> ast.stmt | None:
    """Returns the function, class or assignment at the top of the module that has the line."""
    for statement in tree.body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(each.lineno for each in decorators)])
        if first <= line <= (statement.end_lineno or first):
            return statement
    return None


def _signature_spans(tree: ast.Module) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yields the places of annotations that no running code reads: those of functions and of local
    names. Those of a class are the fields that a decoder checks."""
    fields = {
        id(each.annotation)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        for each in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(each, ast.expr) and id(each) not in fields:
                end = (each.end_lineno or each.lineno, each.end_col_offset or each.col_offset)
                yield (each.lineno, each.col_offset), end


if __name__ == "__main__":
    main(Path(sys.argv[1]))
