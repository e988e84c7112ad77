"""Docstrings are whole sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.sources import OURS, name_of, tree_of

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
