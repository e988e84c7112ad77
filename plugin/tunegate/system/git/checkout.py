"""Files of a checkout that git tracks."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from tunegate.errors import RevisionError
from tunegate.ports import Trailer
from tunegate.system.git.fetch import (
    deepened_until,
    is_ancestor_here,
    is_history_whole,
    is_shallow,
)
from tunegate.system.git.process import GitProcess, new_repository
from tunegate.system.output.temporary_folder import TemporaryFolder


def first_tracked(root: Path, directory: Path) -> str | None:
    """Returns the first file that git tracks in this directory below `root`; '' if there is none,
    None if git cannot say. Everything below a submodule belongs to the checkout."""
    git, inside = GitProcess(root), directory.relative_to(root)
    above = tracked_above(git, inside.as_posix())
    if above:
        return above
    paths = git.text("ls-files", "-z", "--cached", "--", inside.as_posix())
    return None if paths is None else paths.split("\0", 1)[0]


def tracked_above(git: GitProcess, path: str) -> str:
    """Returns the directory above this path that git tracks as one thing, a submodule or a link; ''
    if there is none. Git lists nothing below it."""
    above = [str(parent) for parent in PurePosixPath(path).parents][:-1]
    ask = ("rev-parse", "--verify", "-q")
    return next((each for each in above if git.text(*ask, f":0:{each}") is not None), "")


# Attributes that make a checkout write other bytes than were committed. The committed bytes are
# judged, but where `.gitattributes` converts them on checkout users get another model: such a file
# is rejected.

ATTRIBUTES_FILE = ".gitattributes"
_MATCHING_SECONDS = 30
"""The time for all paths of a revision. Git takes exponential time for a pattern of many `*`."""
_PIECE_BYTES = 2**20
_ASKED = ("text", "crlf", "eol", "ident", "working-tree-encoding")
_UNTOLD = {"unspecified", "unset", "set"}
_IDENT, _BY_CONTENT = "ident", "text=auto "
_AS_COMMITTED = {"utf-8", "utf8"}
"""The encoding of what is committed, which git converts no file from."""


def conversions(attributes: Mapping[str, bytes], paths: Sequence[str]) -> dict[str, str]:
    """Returns the attribute that converts each of these paths, such as `eol=crlf`, without
    unconverted paths. `attributes` are the revision's `.gitattributes` by path. Raises
    RevisionError if git cannot tell."""
    ordered = sorted(paths)
    relevant = [path for path in attributes if _is_above(path, ordered)]
    if not relevant:
        return {}
    with TemporaryFolder() as directory:
        git = new_repository(Path(directory) / "attributes")
        for path in relevant:
            file = git.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(attributes[path])
        lines = "".join(f"{path}\0" for path in paths).encode()
        ask = ("check-attr", "-z", "--stdin", *_ASKED)
        output = git.output(*ask, standard_input=lines, limit_seconds=_MATCHING_SECONDS)
    if output is None:
        raise RevisionError(
            f"{ATTRIBUTES_FILE}: git check-attr failed, or was stopped after "
            f"{_MATCHING_SECONDS} s. Write its patterns with fewer asterisks."
        )
    words = output.decode("utf-8", "surrogateescape").split("\0")
    values: dict[str, dict[str, str]] = {}
    for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=False):
        values.setdefault(path, {})[name] = value
    by_path = {path: _conversion(each) for path, each in values.items()}
    return {path: attribute for path, attribute in by_path.items() if attribute}


def _is_above(attributes: str, ordered: Sequence[str]) -> bool:
    """Returns whether one of the ordered paths lies in the directory of a file of attributes."""
    directory = attributes.removesuffix(ATTRIBUTES_FILE)
    at = bisect_left(ordered, directory)
    return at < len(ordered) and ordered[at].startswith(directory)


def is_safe(path: str) -> bool:
    """Returns whether a tree's path stays below its root: a crafted tree may hold any name."""
    parts = PurePosixPath(path).parts
    return not path.startswith("/") and not {"..", ".git"} & {part.casefold() for part in parts}


_GLOB = re.compile(r"[\\*?\[]")
_QUOTED = re.compile(r"""[\\"]""")
_ESCAPES = {ord("\n"): r"\n", ord("\t"): r"\t", ord("\r"): r"\r"}


def pattern_of(path: str) -> tuple[str, str]:
    """Returns the file of attributes whose last line decides about this path, and the pattern of
    it alone: relative to that file, and in quotes where gitattributes(5) wants them."""
    directory, _, name = path.rpartition("/")
    pattern = f"/{_GLOB.sub(_escape, name)}"
    if re.search(r"\s", name):
        pattern = f'"{_QUOTED.sub(_escape, pattern).translate(_ESCAPES)}"'
    return f"{directory}/{ATTRIBUTES_FILE}".lstrip("/"), pattern


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def changes_bytes(attribute: str, content: BinaryIO) -> bool:
    """Returns whether the conversion changes this content, which is read piece by piece. `ident`
    fills in `$Id$` alone, and `text=auto` leaves content with a zero byte alone."""
    other = attribute.removeprefix(_IDENT).lstrip()
    may_be_filled_in, goes_by_zeros = other != attribute, other.startswith(_BY_CONTENT)
    if other and not goes_by_zeros:
        return True
    has_zero, last = False, b""
    while piece := content.read(_PIECE_BYTES):
        if may_be_filled_in and b"$Id" in last + piece:
            return True
        has_zero = has_zero or b"\0" in piece
        last = piece[-2:]
    return goes_by_zeros and not has_zero


def _conversion(values: Mapping[str, str]) -> str:
    """Returns the conversion that gitattributes(5) gives these values: `crlf` is the old name of
    `text`, and `eol` alone means text."""
    if values["ident"] == "set":
        return f"{_IDENT} {_conversion({**values, 'ident': 'unset'})}".rstrip()
    encoding = values["working-tree-encoding"]
    if encoding not in _UNTOLD and encoding.casefold() not in _AS_COMMITTED:
        return f"working-tree-encoding={encoding}"
    text = values["crlf"] if values["text"] == "unspecified" else values["text"]
    if values["eol"] != "crlf" or text == "unset":
        return ""
    return f"{_BY_CONTENT}eol=crlf" if text == "auto" else "eol=crlf"


# Trees that `git fsck` calls broken. Of two entries with one name, a checkout writes one and git
# reads the other by its path: another file would be judged than users get.

_NO_NAMES = {b"", b".", b"..", b".git"}
_OF_A_DIRECTORY = {b"40000", b"040000"}


class Trees:
    """The checked trees of a repository: most belong to other revisions, too."""

    def __init__(self, git: GitProcess) -> None:
        self._git = git
        self._sound: set[str] = set()

    def problem(self, revision: str) -> str:
        """Returns what is wrong with a tree of the revision, '' if nothing. Raises RevisionError
        for a tree that is not here."""
        tree_output = self._git.output("ls-tree", "-r", "-d", "-z", "--full-tree", revision)
        root = self._git.text("rev-parse", "--verify", "-q", f"{revision}^{{tree}}")
        if tree_output is None or root is None:
            raise RevisionError(f"{revision}: its files cannot be listed. Fetch the whole commit.")
        lines = (line.partition(b"\t") for line in tree_output.split(b"\0") if line)
        entries = [(meta.split(), path) for meta, _, path in lines]
        trees = {root: b"the root"}
        trees |= {each.decode(): path for (_, kind, each), path in entries if kind == b"tree"}
        unseen = [tree for tree in trees if tree not in self._sound]
        lines_in = "".join(f"{each}\n" for each in unseen).encode()
        output = self._git.answer("cat-file", "--batch", standard_input=lines_in)
        position = 0
        for each in unseen:
            header = output[position : output.find(b"\n", position)]
            words = header.split()
            if words[:2] != [each.encode(), b"tree"]:
                raise RevisionError(f"{revision}: its tree {each} cannot be read. Fetch it.")
            start = position + len(header) + 1
            position = start + int(words[2]) + 1
            what = _tree_fault(output[start : position - 1], len(each) // 2)
            if what:
                return f"{trees[each].decode('utf-8', 'backslashreplace')} has {what}"
            self._sound.add(each)
        return ""


def _tree_fault(tree: bytes, id_bytes: int) -> str:
    """Returns what is wrong with a tree's entries (each a mode, a name and an id)."""
    names: set[bytes] = set()
    position, before = 0, b""
    while position < len(tree):
        mode, _, _ = tree[position : position + 8].partition(b" ")
        start = position + len(mode) + 1
        end = tree.index(b"\0", start)
        name, position = tree[start:end], end + 1 + id_bytes
        text = name.decode("utf-8", "backslashreplace")
        if name in names:
            return f"two entries of the name {text!r}"
        if b"/" in name or name.lower() in _NO_NAMES:
            return f"an entry of the name {text!r}, which is none"
        order = name + b"/" if mode in _OF_A_DIRECTORY else name
        if order < before:
            return f"its entry {text!r} in a wrong place"
        names.add(name)
        before = order
    return ""


# Trailers of commit messages: `Key: value` lines at their end.


_MOST_TRAILERS = 1000
"""More lines of a message cost a git process or a parser each, and are nobody's waivers."""


def trailers_between(
    git: GitProcess, base: str, head: str, key: str, *, may_fetch: bool
) -> tuple[Trailer, ...]:
    """Returns the trailers of the commits in `head` but not in `base`, newest first, with folded
    lines joined. None if a shallow clone cannot tell which commits those are."""

    def is_whole() -> bool:
        return is_history_whole(git, base, head)

    if is_shallow(git) and not is_whole():
        if may_fetch:
            deepened_until(git, is_whole, base, head)
        if is_shallow(git) and not is_whole():
            return ()
    form = f"%H%x01%(trailers:key={key},valueonly,unfold,separator=%x01)"
    log = git.text("log", "-z", f"--format={form}", f"{base}..{head}") or ""
    trailers = []
    for entry in log.split("\0"):
        commit, *values = entry.split("\x01")
        trailers += [Trailer(commit, value.strip()) for value in values if value.strip()]

    if len(trailers) > _MOST_TRAILERS:
        if may_fetch:
            raise RevisionError(
                f"{head[:12]} has {len(trailers)} lines {key}: since {base[:12]}, and at most "
                f"{_MOST_TRAILERS} are read. Rewrite the messages of its commits."
            )
        trailers = trailers[:_MOST_TRAILERS]
    # A range goes by dates, and has commits of the base where a clock was wrong.
    commits = dict.fromkeys(trailer.commit for trailer in trailers)
    new = {commit for commit in commits if not is_ancestor_here(git, commit, base)}
    return tuple(trailer for trailer in trailers if trailer.commit in new)
