"""For mkdocs: a link that leaves the documentation leads to the file in the repository."""

from __future__ import annotations

import posixpath
import re
from typing import Protocol

LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(#[^)]*)?\)")


class File(Protocol):
    src_uri: str


class Page(Protocol):
    """A page as mkdocs knows it."""

    file: File


def on_page_markdown(markdown: str, page: Page, config: dict[str, str], **_: object) -> str:
    """Rewrites the links of one page."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def leading(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        if path.startswith("docs/") and posixpath.splitext(path)[1] == ".md":
            return match[0]
        return f"]({config['repo_url']}/blob/main/{path}{match[2] or ''})"

    return LINK.sub(leading, markdown)
