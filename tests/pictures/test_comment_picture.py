import re
import struct

from tests.house.sources import ROOT
from tests.pictures import comment_picture

TEXT = comment_picture.COMMENT.read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def test_the_picture_is_of_this_text() -> None:
    picture = comment_picture.PICTURE.read_bytes()
    assert comment_picture.KEYWORD + b"\0" + comment_picture.digest_of(TEXT).encode() in picture, (
        "draw it anew: python -m tests.pictures.comment_picture"
    )
    assert picture.startswith(comment_picture.SIGNATURE)
    assert struct.unpack(">I", picture[16:20]) == (comment_picture.WIDTH,)


def test_the_readme_shows_the_picture_and_says_its_headline() -> None:
    (described,) = re.findall(r"!\[(.*?)\]\(examples/comment/comment\.png\)", README)
    headline = re.sub(r"^### \S+ |`", "", TEXT.splitlines()[0])
    assert described.startswith(f"{headline}: ")
    assert "(examples/comment/comment.md)" in README
