"""Files are where a reader looks for them, and say what they are for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.sources import (
    OURS,
    PRODUCT,
    functions,
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


# Imports stand at the top of a file, but for what is heavy or may be missing.

HEAVY_DOORS = (
    "tvm",
    "boto3",
    "botocore",
    "urllib3",
    "mlflow",
    "huggingface_hub",
    "ml_dtypes",
    "pynvml",
    "ray",
    "cuda",
    "cupti",
    "scipy",
    "xgboost",
    "tunegate.runtimes",
    "tunegate.models.reference",
    "tunegate.models.preparation",
    "onnx",
    "tunegate.compiler",
    "tunegate_whole_model",
    "tunegate.cli.handlers",
    "tunegate.ci.registry",
    "tunegate.ci.job",
    "tunegate.report.html",
    # What few processes need of the standard library.
    "configparser",
    "importlib.metadata",
    "sysconfig",
    "tomllib",
    # Standard library, ours before it can be trusted to be there.
    "fcntl",
    "tunegate.cli",
    "tunegate.isolation",
    "tunegate_action.entry",
    "tunegate_action.main",
    "tunegate_environment",
)


def test_imports_inside_functions_are_heavy_doors_only() -> None:
    hidden = {
        f"{name_of(path)} {module}"
        for path in PRODUCT
        for function in functions(path)
        for module in imported_modules(function)
        if not module.startswith(HEAVY_DOORS)
    }
    assert not hidden


def imported_modules(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


# Docstrings are whole sentences.

ONLY_ONE_ANSWER = re.compile(r"(None|True|False) (after|before|for|of|once|unless|when|where) ")
LABEL = re.compile(r"(Stage|Note|One sentence|One line): ")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_a_docstring_is_a_whole_sentence() -> None:
    flawed = [
        f"{name_of(path)}:{line}: {flaw}: {text.strip()[:70]}"
        for path in OURS
        for line, text in docstrings(tree_of(path))
        if (flaw := flaw_of(text))
    ]
    assert not flawed, "\n".join(flawed)


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("The number of trials.", ""),
        ("`path` is absolute.", ""),
        ("Returns the layout.\n\n    zone/segment", ""),
        ("None where nobody knows.", "says one answer only"),
        ("Stage: what decides.", "begins with a label"),
        ("ports.Clock of the machine.", "begins with a small letter"),
        ("Milliseconds.", "is one word"),
        ("The number of trials", "ends without a period"),
    ],
)
def test_the_rule_knows_a_fragment(text: str, flaw: str) -> None:
    assert flaw_of(text) == flaw


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of each, with those that stand below a constant."""
    for node in ast.walk(tree):
        if not isinstance(node, Documented):
            continue
        has_constants = isinstance(node, ast.Module | ast.ClassDef)
        for statement in node.body if has_constants else node.body[:1]:
            match statement:
                case ast.Expr(value=ast.Constant(value=str() as text)):
                    yield statement.lineno, text
                case _:
                    pass


def flaw_of(text: str) -> str:
    paragraphs = [part for part in re.split(r"\n\s*\n", text.strip()) if part.strip()]
    first = " ".join(paragraphs[0].split())
    is_code = len(paragraphs) > 1 and paragraphs[-1].startswith((" ", "\t"))
    flaws = {
        "says one answer only": ONLY_ONE_ANSWER.match(first),
        "begins with a label": LABEL.match(first),
        "begins with a small letter": first[0].islower(),
        "is one word": " " not in first,
        "ends without a period": not is_code and not re.search(r"[.!?][`\")]*$", text.rstrip()),
    }
    return next((flaw for flaw, is_there in flaws.items() if is_there), "")
