"""Messages name pages by an address: whoever installed the package has no folder of them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator

from tests.house.sources import ROOT
from tunegate.wording import PAGES, page_address

SOURCES = sorted((ROOT / "plugin" / "tunegate").rglob("*.py"))


def texts(source: str) -> Iterator[str]:
    """The strings that are no docstrings."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            yield str(node.value)


def test_the_address_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["urls"]["Documentation"] == PAGES
    assert page_address("commands") == f"{PAGES}/commands.md"


def test_no_message_names_a_path_of_the_documentation_and_every_page_is_there() -> None:
    named = set()
    for path in SOURCES:
        source = path.read_text("utf-8")
        named |= set(re.findall(r"page_address\(.([\w/-]+).\)", source))
        if "docs/" in source:
            told = [text for text in texts(source) if re.search(r"docs/[\w-]+\.md", text)]
            assert not told or path.name == "init.py", path  # which makes an address of it
    assert named
    assert all((ROOT / "docs" / f"{name}.md").is_file() for name in named)
