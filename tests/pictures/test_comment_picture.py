from __future__ import annotations

import re
import struct

from tests.house.sources import ROOT
from tests.pictures.comment_picture import (
    COMMENT,
    KEYWORD,
    PICTURE,
    SIGNATURE,
    WIDTH,
    digest_of,
    marked,
)

TEXT = COMMENT.read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def test_the_picture_is_of_this_text() -> None:
    picture = PICTURE.read_bytes()
    assert KEYWORD + b"\0" + digest_of(TEXT).encode() in picture, (
        "draw it anew: python -m tests.pictures.comment_picture"
    )
    assert picture.startswith(SIGNATURE)
    assert struct.unpack(">I", picture[16:20]) == (WIDTH,)


def test_a_picture_of_another_text_is_found() -> None:
    picture = marked(PICTURE.read_bytes(), digest_of(TEXT + "."))
    assert digest_of(TEXT + ".").encode() in picture
    assert KEYWORD in picture[:100]


def test_the_readme_shows_the_picture_and_quotes_the_comment() -> None:
    assert "(examples/comment/comment.png)" in README
    quoted = re.findall(r"^> ?(.*)$", README, re.MULTILINE)
    shown = [line for line in quoted if line]
    assert len(shown) > 5
    headline, *others = shown
    assert headline == f"**{TEXT.splitlines()[0].removeprefix('### ')}**"
    assert [line for line in others if line not in TEXT.splitlines()] == []
