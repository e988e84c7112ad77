"""Shell globs over whole paths, matched in one pass, so no glob makes a path expensive."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from tunegate.artifacts.changes import ChangeSet, ModelPath, path_of
from tunegate.config import Config
from tunegate.errors import ConfigError

VERSION = "{version}"
"""Stands for a number in a glob, such as `2`, `v1.10` or `2.0-rc1`. Paths that differ in it are
versions of one model."""
_WILDCARDS = frozenset("*?[")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_PHASE = re.compile(
    r"(?:[-_.]?(dev|alpha|beta|rc|pre|preview)[-_.]?([0-9]*)|([ab])([0-9]+))(?![a-z0-9])",
    re.IGNORECASE,
)
"""The suffix of a version that is not released yet."""
_PHASES = ("dev", "a", "b", "p", "r")
"""The first letters of the phases in their order; `dev` comes before all."""
_RELEASED = (len(_PHASES),)
_MAX_NUMBERS = 64
"""The most numbers of a path that are tried. A path of a pull request may have thousands."""


class Version(NamedTuple):
    """A version for comparison: its numbers, then how near it is to being released."""

    numbers: tuple[int, ...]
    phase: tuple[int, ...] = _RELEASED


class NumberedPath(NamedTuple):
    """`family` is the path with `{version}` for its number, equal for versions of one model."""

    family: str
    version: Version


def matches(glob: str, path: str) -> bool:
    """Returns whether a glob matches a whole path. `*` and `?` stay in one directory, `**` crosses
    directories, `{version}` is a number."""
    if VERSION in glob:
        return numbered_path(glob, path) is not None
    return _glob(glob.removeprefix("./")).fits(path)


def numbered_path(glob: str, path: str) -> NumberedPath | None:
    """Returns the version of a path by a glob with `{version}`, None if it does not match."""
    before, has_version, after = glob.removeprefix("./").partition(VERSION)
    if not has_version or not _may_be_numbered(before, after, path):
        return None
    for number, match in enumerate(_NUMBER.finditer(path)):
        if number == _MAX_NUMBERS:
            break
        for start, end in _spans(path, match):
            rest = path[:start], path[end:]
            if _glob(before).fits(rest[0]) and _glob(after).fits(rest[1]):
                return NumberedPath(VERSION.join(rest), _version(match[0], path[match.end() : end]))
    return None


def _may_be_numbered(before: str, after: str, path: str) -> bool:
    return any(_glob(f"{before}{v}[0-9]*{after}").fits(path) for v in ("", "[vV]"))


def _spans(path: str, number: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yields where a version may begin and end in a path: longest first, with the `v` before its
    number and the phase after it."""
    starts, ends = [number.start()], [number.end()]
    if re.search(r"(?:^|[-_./])v\Z", path[: number.start()][-2:], re.IGNORECASE):
        starts.insert(0, number.start() - 1)
    if phase := _PHASE.match(path, number.end()):
        ends.insert(0, phase.end())
    for end in ends:
        for start in starts:
            yield start, end


def _version(text: str, phase: str = "") -> Version:
    """Returns a version without zeros that say nothing: `1`, `01` and `1.0` are one."""
    numbers = [int(part.lstrip("0")[:_MAX_DIGITS] or "0") for part in text.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    match = _PHASE.fullmatch(phase)
    if match is None:
        return Version(tuple(numbers))
    word, count = (match[1], match[2]) if match[1] else (match[3], match[4])
    order = 0 if word.lower() == "dev" else _PHASES.index(word[0].lower())
    return Version(tuple(numbers), (order, int(count.lstrip("0")[:_MAX_DIGITS] or "0")))


_MAX_DIGITS = 4000
"""More than the name of any file has."""


def may_match_below(glob: str, directory: str) -> bool:
    """Returns whether a glob may match a file below a directory."""
    parts, names = glob.removeprefix("./").split("/"), directory.split("/")
    for part, name in zip(parts, names, strict=False):
        if "**" in part:
            return True
        if not matches(part, name):
            return False
    return len(parts) > len(names)


def is_glob(path: str) -> bool:
    """Returns whether a path of the configuration may match several files."""
    return bool(_WILDCARDS & {*path}) or VERSION in path


def literal(path: str) -> str:
    """Returns the glob that matches this path alone."""
    text = "".join(f"[{each}]" if each in "*?[" else each for each in path)
    return text.replace(VERSION, f"[{{]{VERSION[1:]}")


class _Glob:
    """A glob as an automaton. A set of states is an integer with one bit for each state, so one
    character moves all of them at once and nothing is tried again."""

    def __init__(self, glob: str) -> None:
        self._parts: list[str] = []
        self._any = self._name = self._skip_one = self._skip_two = 0
        for part in _simplify(_parts(glob)):
            self._add(part)
        self._accepting: dict[str, int] = {}
        self._first = self._with_skips(1)
        self._last = 1 << len(self._parts)

    def fits(self, path: str) -> bool:
        states = self._first
        for character in path:
            stay = self._any if character == "/" else self._any | self._name
            forward = (states & self._next_states(character)) << 1
            states = self._with_skips(forward | (states & stay))
            if not states:
                return False
        return bool(states & self._last)

    def _add(self, part: str) -> None:
        bit = 1 << len(self._parts)
        match part:
            case "**":
                self._any |= bit
                self._skip_one |= bit
            case "*":
                self._name |= bit
                self._skip_one |= bit
            case "**/":  # nothing, or anything with a slash behind it
                self._skip_one |= bit
                self._skip_two |= bit
                self._any |= bit << 1
                self._parts.append("")
                part = "/"
            case _:
                pass
        self._parts.append(part)

    def _with_skips(self, states: int) -> int:
        """Returns the states with those reachable without a character. At most three stars stand in
        a row."""
        while True:
            more = (states & self._skip_one) << 1 | (states & self._skip_two) << 2
            if not more & ~states:
                return states
            states |= more

    def _next_states(self, character: str) -> int:
        """Returns the states that accept this character."""
        if character not in self._accepting:
            fitting = (
                1 << place for place, part in enumerate(self._parts) if _takes(part, character)
            )
            self._accepting[character] = sum(fitting)
        return self._accepting[character]


_glob = cache(_Glob)


def _parts(glob: str) -> Iterator[str]:
    """Yields wildcards, brackets and single characters."""
    place, last_bracket = 0, glob.rfind("]")
    while place < len(glob):
        length = _wildcard_length(glob, place, last_bracket)
        yield glob[place : place + length]
        place += length


def _wildcard_length(glob: str, place: int, last_bracket: int) -> int:
    if glob.startswith("**/", place):
        return 3
    if glob.startswith("**", place):
        return 2
    if glob[place] != "[":
        return 1
    inside = place + 2 if glob[place + 1 : place + 2] in {"!", "^"} else place + 1
    if inside + 1 > last_bracket:
        return 1  # never closed: a bracket like any other character
    return glob.index("]", inside + 1) + 1 - place


def _simplify(parts: Iterator[str]) -> list[str]:
    """Merges stars in a row into the widest of them."""
    result: list[str] = []
    for part in parts:
        if result and part in {"*", "**", "**/"}:
            pair = (result[-1], part)
            if pair in {("**", "*"), ("**", "**"), ("**", "**/"), ("**/", "**/")}:
                continue
            if pair in {("*", "**"), ("**/", "**")}:
                result[-1] = "**"
                continue
        result.append(part)
    return result


def _takes(part: str, character: str) -> bool:
    if part in {"*", "**", "**/"}:
        return False  # they stay, or are skipped
    if len(part) > 1:
        return character != "/" and _is_one_of(character, part[1:-1])
    if part == "?":
        return character != "/"
    return part == character


def _is_one_of(character: str, members: str) -> bool:
    """Returns whether a bracket has the character, by its members, ranges and negation."""
    is_excluding = members[0] in "!^"
    place, is_member = int(is_excluding), False
    while place < len(members):
        if members[place + 1 : place + 2] == "-" and place + 2 < len(members):
            is_member = is_member or members[place] <= character <= members[place + 2]
            place += 3
        else:
            is_member = is_member or members[place] == character
            place += 1
    return is_member is not is_excluding


# The models that globs of the command line choose.


def chosen_models(changes: ChangeSet, globs: Sequence[str]) -> ChangeSet:
    """Returns the chosen models, all without a glob. Raises ConfigError for a glob without a
    match."""
    paths = [path_of(change.path) for change in changes.models]
    for glob in globs:
        if not any(matches(glob, path) for path in paths):
            raise ConfigError(f"--model: {glob} matches no configured model.")
    if not globs:
        return changes
    models = [c for c in changes.models if any(matches(g, path_of(c.path)) for g in globs)]
    return msgspec.structs.replace(changes, models=tuple(models))


# Paths of a configuration without a model.

_LIKELY, _LIKELY_GLOB = 0.6, 0.75
"""Globs share stars and endings whatever they mean, so they need more likeness."""
_SHOWN = 3
_ADVISED, _MAX_LIKE_PATHS, _MAX_LIKE_CHARACTERS = 5, 500, 200
"""Likeness is slow: it is looked for in the first entries without a model, paths and characters."""
_COMMIT = "commit the model (also when it is stored by LFS or DVC)."


def unmatched_paths(config: Config, paths: Sequence[ModelPath], place: str) -> Iterator[str]:
    """Yields a line for each entry of `models` that matches none of the paths. `place` describes
    the paths."""
    entries = dict.fromkeys(entry.path for entry in config.models)
    strays = [entry for entry in entries if not any(matches(entry, path) for path in paths)]
    some = list(dict.fromkeys(paths))[:_MAX_LIKE_PATHS]
    free = {path for path in some if not any(matches(entry, path) for entry in entries)}
    for number, glob in enumerate(strays):
        advice = _advice(glob, some, free) if number < _ADVISED else "."
        yield f"path {glob} matches no ONNX file of {place}{advice}"


def _advice(glob: str, paths: Sequence[ModelPath], free: Collection[ModelPath]) -> str:
    """Returns the nearest models, the glob that was likely meant, and what else to do. Only models
    that no other entry matches, the `free`, make a glob likely."""
    is_pattern = is_glob(glob)
    what = "glob" if is_pattern else "path"
    if not paths:
        return f", which has none at all. Correct the {what}, or {_COMMIT}"
    near = sorted(paths, key=lambda path: (-_likeness(glob, path), path))
    rest = [path for path in near if path in free]
    likely_path = near[0] if not is_pattern else _likely_glob(glob, rest[0]) if rest else ""
    nearest = f"; the nearest: {', '.join(near[:_SHOWN])}"
    if _likeness(glob, likely_path) < (_LIKELY_GLOB if is_pattern else _LIKELY):
        return f"{nearest}. Correct the {what}, or {_COMMIT}"
    return f"{nearest if is_pattern else ''}. Did you mean {likely_path}? Otherwise {_COMMIT}"


def _likely_glob(glob: str, path: ModelPath) -> str:
    """Returns the glob most like this one that matches the path."""
    directory, last = str(PurePosixPath(path).parent), glob.rpartition("/")[2]
    own, top = glob.rpartition("/")[0], path.partition("/")[0]
    folders = ["" if each in {"", "."} else f"{each}/" for each in (directory, own)]
    variants = (f"{folder}{name}" for folder in folders for name in (last, "*.onnx"))
    globs = [each for each in (*variants, f"{top}/**/*.onnx") if matches(each, path)]
    return max(globs, key=lambda each: _likeness(glob, each), default=path)


def _likeness(first: str, other: str) -> float:
    begin = slice(_MAX_LIKE_CHARACTERS)
    return SequenceMatcher(None, first[begin], other[begin]).ratio()


# Models whose paths differ in a number, as model servers keep them: `models/enc/1/model.onnx` and
# `models/enc/2/model.onnx`. Decides which version of the base one of the head is compared with.

NumberedFor = Callable[[ModelPath], NumberedPath | None]
"""Returns the version of a path by the configuration, None without a `{version}` pattern."""

_NUMBERS = re.compile(r"(?:(?<=/)|^)v?(\d+(?:\.\d+)*)(?=/)|[-_.]v(\d+(?:\.\d+)*)(?=[./])")
"""A directory that is a number, or a number after a `v`."""
_MOST_NUMBERS = 8


def earlier_versions(
    new: Collection[ModelPath],
    base: Collection[ModelPath],
    head: Collection[ModelPath],
    version_of: NumberedFor,
) -> dict[ModelPath, ModelPath]:
    """Returns the version at the base that a model of the head is compared with. The highest one
    of the head, which a server loads, has the highest of the base, also where it is not new but
    that one is gone. Another new one has the highest that is not later, or the lowest where all
    are. A number never makes a model one that is compared with nothing. Of paths with one version,
    such as 2 and 02, the last by name counts."""
    numbers = {path: number for path in head if (number := version_of(path)) is not None}
    newest: dict[str, Version] = {}
    for number in numbers.values():
        newest[number.family] = max(number.version, newest.get(number.family, number.version))
    families = _versions_by_family(base, version_of)
    pairs: dict[ModelPath, ModelPath] = {}
    for path, number in numbers.items():
        others = families.get(number.family)
        is_newest = number.version == newest[number.family]
        if not others or not (is_newest or path in new):
            continue
        earlier = [other for other in others if is_newest or other[0] <= number.version]
        was = max(earlier)[1] if earlier else min(others)[1]
        if path in new or was not in head:
            pairs[path] = was
    return pairs


def highest_versions(paths: Collection[ModelPath], version_of: NumberedFor) -> set[ModelPath]:
    """Returns the highest version of each model that has versions."""
    return {max(versions)[1] for versions in _versions_by_family(paths, version_of).values()}


class _PathVersion(NamedTuple):
    version: Version
    path: ModelPath


def _versions_by_family(
    paths: Collection[ModelPath], version_of: NumberedFor
) -> dict[str, list[_PathVersion]]:
    return _by_family(paths, lambda path: filter(None, (version_of(path),)))


def uncompared_versions(
    new: Collection[ModelPath],
    missing: Collection[ModelPath],
    base: Collection[ModelPath],
    head: Collection[ModelPath],
) -> Iterator[str]:
    """Yields a line for each new model with an earlier version beside it, and for each deleted one
    with another version, the next later one if there is one. They are models for which no pattern
    has `{version}`."""
    before, after = (_by_family(paths, _likely_numbers) for paths in (base, head))
    for path in sorted(new):
        if version_beside := _beside(path, before, is_earlier=True):
            family, other = version_beside
            yield (
                f"{path} is new, so it is not compared with {other}: write path: {family} in "
                "models to compare each version with the one before it"
            )
    for path in sorted(missing):
        version_beside = _beside(path, after, is_earlier=False)
        if version_beside := version_beside or _beside(path, after, is_earlier=True):
            family, other = version_beside
            yield (
                f"{path} is deleted, and {other} stays without being compared with it: write "
                f"path: {family} in models to compare each version with the one before it"
            )


def _beside(
    path: ModelPath, families: dict[str, list[_PathVersion]], *, is_earlier: bool
) -> tuple[str, ModelPath] | None:
    """Returns the family of a path, and its nearest other version in this direction."""
    for number in _likely_numbers(path):
        others = families.get(number.family, ())
        if is_earlier:
            nearest = max((o for o in others if o.version < number.version), default=None)
        else:
            nearest = min((o for o in others if o.version > number.version), default=None)
        if nearest is not None:
            return number.family, nearest.path
    return None


def _by_family(
    paths: Collection[ModelPath], numbers_of: Callable[[ModelPath], Iterable[NumberedPath]]
) -> dict[str, list[_PathVersion]]:
    families: dict[str, list[_PathVersion]] = {}
    for path in paths:
        for number in numbers_of(path):
            families.setdefault(number.family, []).append(_PathVersion(number.version, path))
    return families


def _likely_numbers(path: ModelPath) -> Iterator[NumberedPath]:
    for count, match in enumerate(_NUMBERS.finditer(path)):
        if count == _MOST_NUMBERS:
            return
        group = 1 if match[1] is not None else 2
        start, end = match.span(group)
        yield NumberedPath(f"{path[:start]}{VERSION}{path[end:]}", _version(match[group]))
