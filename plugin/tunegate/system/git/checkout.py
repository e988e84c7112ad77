"""Files of a checkout that git tracks."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from tunegate.ports import Trailer
from tunegate.system.git.fetch import deepened_until, is_history_whole, is_shallow
from tunegate.system.git.process import GitProcess, new_repository


def first_tracked(root: Path, directory: Path) -> str | None:
    """The first file that git tracks in this directory below the working tree's `root`; '' where
    where there is none, None where git cannot say. Below a submodule all is the checkout's."""
    git, inside = GitProcess(root), directory.relative_to(root)
    above = tracked_above(git, inside.as_posix())
    if above:
        return above
    listed = git.text("ls-files", "-z", "--cached", "--", inside.as_posix())
    return None if listed is None else listed.split("\0", 1)[0]


def tracked_above(git: GitProcess, path: str) -> str:
    """Returns the directory on the way to this path that git tracks as one thing, a submodule or a
    link; '' where there is none. Of what is below it, git lists nothing."""
    above = [str(each) for each in PurePosixPath(path).parents][:-1]
    ask = ("rev-parse", "--verify", "-q")
    return next((each for each in above if git.text(*ask, f":0:{each}") is not None), "")


# Attributes that make a checkout write other bytes than were committed. What is judged are the
# committed bytes. Where `.gitattributes` has them converted on their way out, users get another
# model, so such a file is refused.

ATTRIBUTES_FILE = ".gitattributes"
_ASKED = ("text", "crlf", "eol", "ident", "working-tree-encoding")
_UNTOLD = {"unspecified", "unset", "set"}
_BY_CONTENT = "text=auto "


def conversions(attributes: Mapping[str, bytes], paths: Sequence[str]) -> dict[str, str]:
    """Returns the attribute that converts each of these paths, such as `eol=crlf`; unconverted
    paths are left out. `attributes` are the contents of the revision's `.gitattributes` by path."""
    if not attributes or not paths:
        return {}
    with tempfile.TemporaryDirectory() as directory:
        git = new_repository(Path(directory) / "attributes")
        for path, content in attributes.items():
            file = git.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        asked = "".join(f"{path}\0" for path in paths).encode()
        told = git.output("check-attr", "-z", "--stdin", *_ASKED, standard_input=asked) or b""
    words = told.decode("utf-8", "surrogateescape").split("\0")
    values: dict[str, dict[str, str]] = {}
    for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=False):
        values.setdefault(path, {})[name] = value
    found = {path: _conversion(each) for path, each in values.items()}
    return {path: attribute for path, attribute in found.items() if attribute}


def is_safe(path: str) -> bool:
    """Returns whether a tree's path stays below its root: a handmade tree may hold any name."""
    parts = PurePosixPath(path).parts
    return not path.startswith("/") and not {"..", ".git"} & {part.casefold() for part in parts}


def changes_bytes(attribute: str, content: bytes) -> bool:
    """Returns whether the conversion changes this content. `text=auto` leaves alone what holds a
    zero byte."""
    return not (attribute.startswith(_BY_CONTENT) and b"\0" in content)


def _conversion(values: Mapping[str, str]) -> str:
    """The conversion that gitattributes(5) gives these values: `crlf` is the old name of
    `text`, and `eol` alone means text."""
    if values["ident"] == "set":
        return "ident"
    if values["working-tree-encoding"] not in _UNTOLD:
        return f"working-tree-encoding={values['working-tree-encoding']}"
    text = values["crlf"] if values["text"] == "unspecified" else values["text"]
    if values["eol"] != "crlf" or text == "unset":
        return ""
    return f"{_BY_CONTENT}eol=crlf" if text == "auto" else "eol=crlf"


# Trailers of commit messages: `Key: value` lines at their ends.


def trailers_between(
    git: GitProcess, base: str, head: str, key: str, *, may_fetch: bool
) -> tuple[Trailer, ...]:
    """The trailers of the commits that `head` has and `base` has not, the newest first. Folded
    lines are one. None where a shallow clone cannot tell those commits from older ones."""

    def is_whole() -> bool:
        return is_history_whole(git, base, head)

    if is_shallow(git) and not is_whole():
        if may_fetch:
            deepened_until(git, is_whole, base, head)
        if is_shallow(git) and not is_whole():
            return ()
    shown = f"%H%x01%(trailers:key={key},valueonly,unfold,separator=%x01)"
    listed = git.text("log", "-z", f"--format={shown}", f"{base}..{head}") or ""
    found = []
    for entry in listed.split("\0"):
        commit, *values = entry.split("\x01")
        found += [Trailer(commit, value.strip()) for value in values if value.strip()]
    return tuple(found)
