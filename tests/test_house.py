"""The house rules that a machine can check, on every file of ours."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import tunegate

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ROOTS = ("action", "plugin", "cache")
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 40
WEAK_NAMES = {"util", "utils", "helper", "helpers", "common", "base", "manager", "misc"}
WEAK_WORD = re.compile(r"(^|_)(utils?|helpers?|common|manager|misc)(_|$)")


def python_files(*folders: str) -> list[Path]:
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in found if "node_modules" not in path.parts)


PRODUCT = python_files(*SOURCE_ROOTS)
OURS = PRODUCT + python_files("tests", "benchmarks", "examples")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_a_file_can_be_read_in_one_go(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    too_long = {
        f"{function.name} has {lines} lines"
        for function in functions(path)
        if (lines := length_without_docstring(function)) > MAX_FUNCTION_LINES
    }
    assert not too_long


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_a_file_is_named_after_what_it_is_about(path: Path) -> None:
    assert path.stem not in WEAK_NAMES
    assert not WEAK_WORD.search(path.stem)


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text())
    if path.name.startswith("test_") or (path.name == "__init__.py" and not tree.body):
        return  # the names of tests are sentences
    docstring = ast.get_docstring(tree)
    assert docstring
    assert len(docstring.split("\n\n", maxsplit=1)[0].splitlines()) <= 3


@pytest.mark.parametrize("path", PRODUCT, ids=name_of)
def test_imports_inside_functions_are_heavy_doors_only(path: Path) -> None:
    doors = (
        "tvm",
        "boto3",
        "botocore",
        "urllib3",
        "pynvml",
        "ray",
        "cuda",
        "cupti",
        "scipy",
        "xgboost",
        "tunegate.edges.bench.onnxruntime_profile",
        "tunegate.edges.metaschedule",
        "tunegate.commands",
        "tunegate.render.html",
        # Standard library, ours before it can be trusted to be there.
        "fcntl",
        "tunegate.cli",
        "tunegate.entry",
        "tunegate.isolation",
        "tunegate.supported_machine",
        "tunegate.unexpected",
        "tunegate_action.entry",
        "tunegate_action.main",
    )
    hidden = {
        module
        for function in functions(path)
        for module in imported_modules(function)
        if not module.startswith(doors)
    }
    assert not hidden


@pytest.mark.parametrize("path", python_files("tests"), ids=name_of)
def test_a_test_file_mirrors_a_source_file(path: Path) -> None:
    part = path.relative_to(ROOT / "tests").parts[0]
    if not path.name.startswith("test_") or part not in SOURCE_ROOTS:
        return
    inside = path.relative_to(ROOT / "tests" / part).parent
    subject = path.stem.removeprefix("test_")
    homes = [ROOT / part / package / inside for package in packages(part)] + [ROOT / part / inside]
    mirrored = any((home / f"{subject}.py").exists() or (home / subject).is_dir() for home in homes)
    assert mirrored, f"no {subject}.py or {subject}/ in {[name_of(home) for home in homes]}"


def test_no_page_or_program_names_the_machine_it_was_written_on() -> None:
    project = re.compile(r"/(work|root|home/[a-z]+)/")
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    naming = [name_of(path) for path in OURS + pages if project.search(path.read_text())]
    assert not naming


def test_the_version_is_said_once_and_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == tunegate.__version__


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def imported_modules(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def packages(part: str) -> list[str]:
    return [p.name for p in (ROOT / part).iterdir() if (p / "__init__.py").exists()]
