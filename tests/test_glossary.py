"""The glossary explains terms that the project uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCES = [
    path
    for part in ("action", "plugin", "cache")
    for kind in ("*.py", "*.j2")
    for path in sorted((ROOT / part).rglob(kind))
]
PAGES = [
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path != GLOSSARY),
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
]


def rows(title: str) -> list[tuple[str, str]]:
    text = GLOSSARY.read_text()
    _, _, rest = text.partition(f"## {title}\n")
    section = rest.partition("\n## ")[0]
    return [
        (first.strip(), second.strip())
        for first, second in re.findall(r"^\|([^|]+)\|([^|]+)\|$", section, re.MULTILINE)
        if set(first) != {"-"}
    ][1:]


def terms() -> list[str]:
    groups = re.findall(r"^## (.+)$", GLOSSARY.read_text(), re.MULTILINE)
    return [term.strip("*") for group in groups for term, _ in rows(group)]


def as_pattern(words: str) -> re.Pattern[str]:
    """Matches the words in prose and in names, with the usual endings."""
    stem = r"[\s_-]*".join(re.escape(word) for word in words.split())
    return re.compile(rf"(?<![a-z]){stem}(?:s|es|ed|ing)?(?![a-z])", re.IGNORECASE)


TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in (*SOURCES, *PAGES)}


def test_the_glossary_has_each_term_once() -> None:
    assert len(terms()) > 50
    assert len(terms()) == len(set(terms()))


@pytest.mark.parametrize("term", terms())
def test_a_term_of_the_glossary_occurs_in_the_project(term: str) -> None:
    pattern = as_pattern(term)
    assert any(pattern.search(text) for text in TEXTS.values())
