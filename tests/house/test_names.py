"""Files are where a reader looks for them, and say what they are for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house.sources import (
    OURS,
    name_of,
    tree_of,
)

WEAK_NAMES = {"util", "utils", "helper", "helpers", "common", "base", "manager", "misc"}
WEAK_WORD = re.compile(r"(^|_)(utils?|helpers?|common|manager|misc)(_|$)")


def test_a_file_is_named_after_what_it_is_about() -> None:
    weak = [path for path in OURS if path.stem in WEAK_NAMES or WEAK_WORD.search(path.stem)]
    assert not [name_of(path) for path in weak]


def test_a_module_says_what_it_is_for() -> None:
    assert not [name_of(path) for path in OURS if not says_what_it_is_for(path)]


def says_what_it_is_for(path: Path) -> bool:
    tree = tree_of(path)
    if path.name.startswith("test_") or (path.name == "__init__.py" and not tree.body):
        return True  # the names of tests are sentences
    docstring = ast.get_docstring(tree) or ""
    first_paragraph = docstring.split("\n\n", maxsplit=1)[0]
    return 0 < len(first_paragraph.splitlines()) <= 3
