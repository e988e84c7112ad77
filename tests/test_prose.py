"""Sentences of the documentation are short enough to be read once."""

import re
import statistics
from pathlib import Path

import pytest

from tests.support.documentation import pages

ROOT = Path(__file__).resolve().parents[1]
OTHERS = {"CHANGELOG.md", "commands.md"}
"""History, and a page made from the declarations of the commands."""
PAGES = [path for path in pages() if path.name not in OTHERS]
MAX_MEDIAN_WORDS = 18
LONG_WORDS = 30
MAX_LONG_SHARE = 0.1
FEW = 10
"""A page with fewer sentences has no share to speak of."""


def sentences(text: str) -> list[str]:
    """The sentences of a page, without code, tables and headings. A code span is one word."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^#+ .*$", "", text, flags=re.MULTILINE)
    found = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\. ))", text):
        plain = re.sub(r"^\s*(?:[-*>]|\d+\.)\s+", "", block.strip())
        if not plain or plain[0] in "|<":
            continue
        plain = re.sub(r"`[^`]*`", "X", plain)
        plain = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain).split())
        found += re.split(r"(?<=[.!?:;])\s+(?=[A-Z\"(*0-9])", plain)
    return [each for each in found if len(each.split()) > 2]


def words_in(sentence: str) -> int:
    return len(sentence.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    found = sentences(page.read_text())
    if len(found) < FEW:
        return
    long = [each for each in found if words_in(each) > LONG_WORDS]
    assert statistics.median(map(words_in, found)) <= MAX_MEDIAN_WORDS
    assert len(long) <= MAX_LONG_SHARE * len(found), long


def test_code_tables_and_headings_are_no_sentences() -> None:
    page = "# A heading of four words\nOne sentence here. Another one\nfollows `a b c`.\n\n"
    page += "| a | table of words |\n|---|---|\n\n```sh\nrun this and that\n```\n- An item of words"
    assert sentences(page) == ["One sentence here.", "Another one follows X.", "An item of words"]


# The glossary explains terms that the project uses.

GLOSSARY_ROOT = Path(__file__).parent.parent
GLOSSARY = GLOSSARY_ROOT / "docs" / "glossary.md"
SOURCES = [
    path
    for part in ("action", "plugin", "cache")
    for kind in ("*.py", "*.j2")
    for path in sorted((GLOSSARY_ROOT / part).rglob(kind))
]
GLOSSARY_PAGES = [
    *sorted(path for path in (GLOSSARY_ROOT / "docs").rglob("*.md") if path != GLOSSARY),
    *(GLOSSARY_ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
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


TEXTS = {
    str(path.relative_to(GLOSSARY_ROOT)): path.read_text() for path in (*SOURCES, *GLOSSARY_PAGES)
}


def test_the_glossary_has_each_term_once() -> None:
    assert len(terms()) > 50
    assert len(terms()) == len(set(terms()))


@pytest.mark.parametrize("term", terms())
def test_a_term_of_the_glossary_occurs_in_the_project(term: str) -> None:
    pattern = as_pattern(term)
    assert any(pattern.search(text) for text in TEXTS.values())
