"""Draws `examples/comment/comment.md` as GitHub does, at the width of a comment:
`python -m tests.pictures.comment_picture`, after that file has changed."""

import base64
import hashlib
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from markdown_it import MarkdownIt

from tests.house.sources import ROOT
from tests.support.browser import browser, show

COMMENT = ROOT / "examples" / "comment" / "comment.md"
PICTURE = COMMENT.with_suffix(".png")
STYLE = Path(__file__).with_name("github.css")
WIDTH = 780
SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEYWORD = b"Comment-SHA256"
_HEADER_BYTES = len(SIGNATURE) + 25


def page(markdown: str) -> str:
    """The comment as HTML, folds closed as GitHub shows them."""
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    style = STYLE.read_text("utf-8")
    return f"<!doctype html><meta charset=utf-8><style>{style}</style><body>{body}</body>"


def digest_of(markdown: str) -> str:
    return hashlib.sha256(markdown.encode()).hexdigest()


def marked(picture: bytes, digest: str) -> bytes:
    """The picture with the digest of its text in a tEXt chunk behind its header."""
    content = KEYWORD + b"\0" + digest.encode()
    checksum = zlib.crc32(b"tEXt" + content)
    chunk = struct.pack(">I", len(content)) + b"tEXt" + content + struct.pack(">I", checksum)
    return picture[:_HEADER_BYTES] + chunk + picture[_HEADER_BYTES:]


def draw() -> None:
    """Writes the picture beside the text."""
    text = COMMENT.read_text("utf-8")
    fonts = subprocess.run(["fc-list"], capture_output=True, text=True, check=True).stdout
    if "emoji" not in fonts.lower():
        sys.exit("No font here has the verdict's sign. Install fonts-noto-color-emoji.")
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as chrome:
        file = Path(folder) / "comment.html"
        file.write_text(page(text), encoding="utf-8")
        show(chrome, file, width=WIDTH)
        height = chrome.execute_script("return document.body.offsetHeight")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        shot = chrome.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
        )
    PICTURE.write_bytes(marked(base64.b64decode(shot["data"]), digest_of(text)))


if __name__ == "__main__":
    draw()
