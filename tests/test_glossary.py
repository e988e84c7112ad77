"""The glossary and the project use the same words: its terms occur, the words it bans do not."""

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
EXCEPTIONS = {("give back", "plugin/tunegate/commands/cache/fsck.py")}
"""A store gives back what it holds: the word in its ordinary sense."""


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
    groups = re.findall(r"^## (.+)$", GLOSSARY.read_text(), re.MULTILINE)[:-1]
    return [term.strip("*") for group in groups for term, _ in rows(group)]


def banned() -> list[str]:
    return [word for words, _ in rows("Words that we do not use") for word in words.split(", ")]


def as_pattern(words: str) -> re.Pattern[str]:
    """Matches the words in prose and in names, with the usual endings."""
    stem = r"[\s_-]*".join(re.escape(word) for word in words.split())
    return re.compile(rf"(?<![a-z]){stem}(?:s|es|ed|ing)?(?![a-z])", re.IGNORECASE)


TEXTS = {str(path.relative_to(ROOT)): path.read_text() for path in (*SOURCES, *PAGES)}


def test_the_glossary_has_terms_and_banned_words() -> None:
    assert len(terms()) > 50
    assert len(banned()) > 15
    assert len(terms()) == len(set(terms()))


@pytest.mark.parametrize("term", terms())
def test_a_term_of_the_glossary_occurs_in_the_project(term: str) -> None:
    pattern = as_pattern(term)
    assert any(pattern.search(text) for text in TEXTS.values())


@pytest.mark.parametrize("word", banned())
def test_a_banned_word_occurs_nowhere(word: str) -> None:
    pattern = as_pattern(word)
    found = {
        name: sorted({match.group() for match in pattern.finditer(text)})
        for name, text in TEXTS.items()
        if (word, name) not in EXCEPTIONS and pattern.search(text)
    }
    assert not found


@pytest.mark.parametrize(
    "text", ["borrowed", "def borrow(", "Borrow", "_borrow_all", "borrowed_order"]
)
def test_a_banned_word_is_found_in_every_spelling(text: str) -> None:
    assert as_pattern("borrow").search(text)
    assert not as_pattern("adopt").search("adaptation")
