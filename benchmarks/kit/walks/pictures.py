"""Pictures of pages as readers see them, by a headless browser."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from tests.support.browser import browser, show

_STYLE = """\
body { font: 14px/1.5 -apple-system, 'Segoe UI', sans-serif; margin: 24px; color: #1f2328; }
table { border-collapse: collapse; } th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
code { font: 85% ui-monospace, monospace; background: #818b981f; padding: .2em .4em;
  border-radius: 6px; }
pre { background: #f6f8fa; padding: 16px; overflow: auto; }
pre code { background: none; padding: 0; }
blockquote { border-left: .25em solid #d1d9e0; margin: 0; padding: 0 1em; color: #59636e; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #f0f6fc; }
  th, td { border-color: #3d444d; } pre { background: #151b23; }
  blockquote { color: #9198a1; border-color: #3d444d; } }
"""


def pictured(page: Path, picture: Path, *, width: int, scheme: str = "light") -> str:
    """Keeps a picture of the whole page, and says its size and whether it is wider than asked."""
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as chrome:
        show(chrome, page, width=width, scheme=scheme)
        asked = "return [document.documentElement.scrollWidth, document.body.scrollHeight]"
        wide, high = chrome.execute_script(asked)
        clip = {"x": 0, "y": 0, "width": width, "height": high, "scale": 1}
        told = {"format": "png", "captureBeyondViewport": True, "clip": clip}
        image: dict[str, Any] = chrome.execute_cdp_cmd("Page.captureScreenshot", told)
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_bytes(base64.b64decode(image["data"]))
    return f"{width} x {high}" + (f", scrolls to {wide}" if wide > width else "")


def comment_page(markdown: Path, page: Path) -> Path:
    """Writes the comment as a host shows it: tables, folds and code, in its column."""
    rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown.read_text())
    head = f'<!doctype html><meta charset="utf-8"><style>{_STYLE}</style>'
    page.write_text(f"{head}<body>{rendered}</body>")
    return page
