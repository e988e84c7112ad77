"""The content of a page, without its looks."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "input"}
QUIET = {"script", "style", "svg"}


class Outline(HTMLParser):
    """The page's texts, each under the element that holds it; drawings and styles left out."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and not QUIET & set(self.open):
            self.lines.append(f"{'  ' * len(self.open)}{self.open[-1]}: {' '.join(data.split())}")


def outline(page: str) -> Outline:
    """Fails when the elements do not close in the order in which they opened."""
    parser = Outline()
    parser.feed(re.sub(r"<(path|use|rect)\b([^>]*)/>", r"<\1\2></\1>", page))
    assert parser.open == []
    return parser
