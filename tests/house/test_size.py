"""Files, functions and folders that can be held in mind."""

from __future__ import annotations

import ast
from collections import Counter

from tests.house.sources import OURS, Function, functions, name_of

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 40
MAX_FOLDER_MODULES = 25


def test_a_file_can_be_read_in_one_go() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in OURS}
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES}


def test_a_function_fits_on_a_screen() -> None:
    lengths = {
        f"{name_of(path)} {function.name}": length_without_docstring(function)
        for path in OURS
        for function in functions(path)
    }
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}


def test_a_folder_can_be_looked_over() -> None:
    modules = Counter(name_of(path.parent) for path in OURS if path.name != "__init__.py")
    crowded = {name: count for name, count in modules.items() if count > MAX_FOLDER_MODULES}
    assert not crowded


def length_without_docstring(function: Function) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring
