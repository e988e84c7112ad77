"""The documentation as a site: every page is in its navigation, and quotes what is said."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SOURCES = "\n".join(
    path.read_text() for part in ("plugin", "cache") for path in (ROOT / part).rglob("*.py")
)
CODE = re.sub(r'"\s*\n\s*f?"', "", SOURCES)
"""The sources with the parts of a text put together."""


Entry = str | dict[str, "Entry"] | list["Entry"]


def pages(entry: Entry) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    members = entry.values() if isinstance(entry, dict) else entry
    return [page for member in members for page in pages(member)]


def test_every_page_is_in_the_navigation_once() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    found = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(pages(settings["nav"])) == sorted(found)


def quoted() -> list[str]:
    """The messages in the first column of the tables of docs/troubleshooting.md."""
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("message", quoted())
def test_a_message_that_is_explained_is_one_that_is_written(message: str) -> None:
    words = [re.escape(part) for part in re.split(r"\d+%?", message)]
    assert re.search(r"(?:\{[^}]*\}|\d+)?%?".join(words), CODE), message


def test_there_are_messages_to_explain() -> None:
    assert len(quoted()) > 20


def test_no_block_of_code_has_words_beside_its_language() -> None:
    """The site's Markdown takes such a fence for text, and all up to the next one for code."""
    fences = re.compile(r"^ *```\w+ .*", re.MULTILINE)
    found = {path.name: fences.findall(path.read_text()) for path in DOCS.rglob("*.md")}
    assert not {name: lines for name, lines in found.items() if lines}


def test_a_reader_gets_out_of_the_scheme_that_was_seen_first() -> None:
    """The theme keeps the first scheme: without switches dark stays dark."""
    palette = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["theme"]["palette"]
    assert palette[0]["media"] == "(prefers-color-scheme)"
    assert all(each["toggle"]["name"] for each in palette)
