"""A public name stands for one thing, in whatever module a reader meets it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tests.house.sources import PRODUCT, name_of, tree_of

ROLES = {
    # What each module of a kind has to have, so that one loop serves them all.
    "COMMAND": "a declaration in cli/commands/",
    "run": "what a command does, and the pipeline",
    "main": "a program that is run by its module's name",
    "entry": "a console script",
    "render": "a report in render/",
    "script": "a shell's completion",
    "RUNTIME": "a runtime in runtimes/",
    "Request": "what a child process is asked",
    "handle_request": "the answer of a child process",
}
COPIES = {
    # The bootstrap of the Action runs before anything of the project can be imported.
    *("absolute_only", "cache_directory", "explained"),
    # typing's own names, which stand at the top of a module.
    "TYPE_CHECKING",
}


def test_no_public_name_stands_for_two_things() -> None:
    modules = defaultdict(set)
    for path in PRODUCT:
        for name in public_names(tree_of(path)):
            modules[name].add(name_of(path))
    several = {name: sorted(paths) for name, paths in modules.items() if len(paths) > 1}
    excepted = {*ROLES, *COPIES}
    assert not {name: paths for name, paths in several.items() if name not in excepted}
    assert not excepted - set(several), "an exception that is needed no more"


def public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names = [name]
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case _:
                names = []
        yield from (name for name in names if not name.startswith("_"))
