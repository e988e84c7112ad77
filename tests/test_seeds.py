"""The page of the works behind the product names code that exists, and rows that are measured."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "seeds.md"
WORKS = ("Trimmer", "DOPpler", "Transfer-tuning", "GSPC", "DLAS", "One-Shot Tuner", "MetaTune")
ABSENT = ("not taken", "missing, needs a device")
"""A mechanism that is nowhere was left out with a reason, or waits for a GPU to be judged on."""


def mechanisms() -> list[tuple[str, ...]]:
    """The cells of each line: mechanism, where, what differs, row."""
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| (?!-)", line)]
    rows = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]
    return [(*row, "")[:4] for row in rows if row[0] != "mechanism"]


def headlines() -> set[str]:
    tree = ast.parse((ROOT / "benchmarks" / "papers" / "headline.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        str(ast.literal_eval(call.args[0]))
        for call in calls
        if ast.unparse(call.func) == "Headline"
    }


def measured() -> list[str]:
    """The rows that the experiments of headlines.py say that they make."""
    tree = ast.parse((ROOT / "benchmarks" / "papers" / "headlines.py").read_text())
    (experiments,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "EXPERIMENTS"
    )
    assert isinstance(experiments, ast.Dict)
    return [name for names in experiments.values for name in ast.literal_eval(names)]


def file_of(path: str) -> Path:
    return next(
        found for found in (ROOT / "plugin" / "tunegate" / path, ROOT / path) if found.is_file()
    )


@cache
def symbols(file: Path) -> set[str]:
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda cells: str(cells[0]))
def test_a_mechanism_is_where_the_page_says_or_says_why_not(mechanism: tuple[str, ...]) -> None:
    _, where, differs, row = mechanism
    if where in ABSENT:
        assert differs
        return
    path, symbol = where.strip("`").split("::")
    assert symbol in symbols(file_of(path))
    assert not row or row.strip("`") in headlines()


def test_every_headline_is_measured_once_and_named_on_the_page() -> None:
    named = {row.strip("`") for *_, row in mechanisms() if row}
    assert sorted(measured()) == sorted(headlines())
    assert headlines() == named


def test_every_work_has_its_mechanisms() -> None:
    page = PAGE.read_text()
    assert all(f"\n## {work}" in page for work in (*WORKS, "MonoDNN"))
    assert len(mechanisms()) > 40


def test_the_kept_rows_are_headlines() -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "papers.json").read_text())
    rows = [row[0].strip("`") for table in kept["tables"] for row in table["rows"]]
    assert set(rows) <= headlines()
    assert len(rows) == len(set(rows))
