"""Requirements as pip reads them, with hashes or without.

Only `name==version` is a pin. Addresses, paths, revisions of a repository and open versions are
rejected by name; they matter only if a runtime needs the package.
"""

from __future__ import annotations

import optparse
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple, NoReturn

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from tunegate_upgrades.lock_files.lock import (
    LockFile,
    LockFileError,
    PinnedPackage,
    as_lock,
    normal_name,
)
from tunegate_upgrades.lock_files.markers import applies

ReadText = Callable[[str], str]
"""Returns the text of another file of the same revision. Raises LockFileError if there is none."""

MAX_INCLUDED = 16
"""The most files that include each other."""
_MAX_REQUIREMENT = 4000
_INLINE = re.compile(r"\s--(?:hash|config-settings?|global-option|install-option)(?=[\s=])")
_HASH = re.compile(r"--hash[=\s]\s*(sha(?:256|384|512):[0-9a-f]{64,128})(?=\s|$)")
_WHEEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.]*)-[^/\\-]+(?:-[^/\\]+)?\.(?:whl|tar\.gz|zip)")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9][A-Za-z0-9._-]*)")
_OPTIONS = (
    ("-r", "--requirement"),
    ("-c", "--constraint"),
    ("-i", "--index-url", "--pypi-url"),
    ("-f", "--find-links"),
    ("-e", "--editable"),
    *(("--extra-index-url",), ("--no-binary",), ("--only-binary",)),
    *(("--trusted-host",), ("--use-feature",)),
)
"""The options with a value that pip takes in a line, and beside them those without."""
_FLAGS = ("--no-index", "--prefer-binary", "--require-hashes", "--pre")


class _Line(NamedTuple):
    text: str
    where: str


def read_requirements(path: str, text: str, read_other: ReadText) -> LockFile:
    """Returns the pins of a file and of those that it includes. Raises LockFileError."""
    reading = _Reading(read_other)
    reading.add(path, text)
    indexes = tuple(dict.fromkeys(reading.indexes))
    pins = (msgspec.structs.replace(pin, indexes=indexes) for pin in reading.pins)
    lock = as_lock(path, pins, reading.refused, reading.rest)
    return msgspec.structs.replace(lock, for_others=frozenset(reading.for_others))


class _Reading:
    """The parts read so far."""

    def __init__(self, read_other: ReadText) -> None:
        self._read_other = read_other
        self._seen: set[str] = set()
        self._constraints: set[str] = set()
        self.pins: list[PinnedPackage] = []
        self.refused: dict[str, str] = {}
        self.indexes: list[str] = []
        self.rest: list[str] = []
        self.for_others: set[tuple[str, str]] = set()

    def add(self, path: str, text: str) -> None:
        self._seen.add(path)
        if len(self._seen) > MAX_INCLUDED:
            raise LockFileError(f"{path}: more than {MAX_INCLUDED} files of requirements.")
        for line in _lines(path, text):
            if not line.text.startswith("-"):
                self._requirement(line)
                continue
            self._note(line.text)
            for name, value in _options(line):
                self._option(path, name, value, line.where)

    def _option(self, path: str, name: str, value: str, where: str) -> None:
        if name == "-r":
            other = _beside(path, value, where)
            if other not in self._seen:
                self.add(other, self._read_other(other))
        elif name == "-c":
            with suppress(LockFileError):
                other = _beside(path, value, where)
                if other not in self._constraints:
                    self._constraints.add(other)
                    self._note(self._read_other(other))
            if len(self._constraints) > MAX_INCLUDED:
                raise LockFileError(f"{where}: more than {MAX_INCLUDED} files of constraints.")
        elif name in {"-i", "--extra-index-url"}:
            self.indexes.append(value)
        elif name == "-f":
            self.indexes.append(f"--find-links {value}")
        elif name == "-e" and (named := _named_by_address(value)):
            self.refused[named] = f"{where}: {named} is a directory or a repository"

    def _note(self, text: str) -> None:
        """Notes a text that is no pin, and may decide what is installed for a refused package."""
        self.rest.append(text)

    def _requirement(self, line: _Line) -> None:
        inline = _INLINE.search(line.text)
        asked = line.text[: inline.start()] if inline else line.text
        try:
            wanted = Requirement(asked) if len(asked) <= _MAX_REQUIREMENT else None
        except (InvalidRequirement, RecursionError):
            wanted = None
        if wanted is None:
            self._note(line.text)
            self._unread(asked, line.where)
            return
        try:
            is_here = wanted.marker is None or applies(str(wanted.marker))
        except ValueError as error:
            raise LockFileError(f"{line.where}: {error}.") from error
        if is_here:
            self._add_requirement(wanted, line)
        else:
            self.for_others.add((normal_name(wanted.name), str(wanted)))

    def _add_requirement(self, requirement: Requirement, line: _Line) -> None:
        name = normal_name(requirement.name)
        pinned = [each for each in requirement.specifier if each.operator in {"==", "==="}]
        version = pinned[0].version if len(pinned) == len(requirement.specifier) == 1 else ""
        if requirement.url or not version or "*" in version:
            self._note(line.text)
        if requirement.url:
            self.refused[name] = (
                f"{line.where}: {name} is taken from {_without_user(requirement.url)}"
            )
        elif not version or "*" in version:
            said = str(requirement.specifier) or "any version"
            self.refused[name] = f"{line.where}: {name} is not pinned to one version ({said})"
        else:
            hashes = tuple(_HASH.findall(line.text))
            self.pins.append(
                PinnedPackage(name=name, version=version, hashes=hashes, where=line.where)
            )

    def _unread(self, source: str, where: str) -> None:
        """Notes a path or an address; one that names no package cannot be a runtime's."""
        if named := _named_by_address(source):
            self.refused[named] = f"{where}: {named} is taken from {_without_user(source)}"
        elif not re.search(r"[/\\]|^\.", source):
            raise LockFileError(f"{where}: no requirement: {source.strip()[:80]}")


def _lines(path: str, text: str) -> Iterator[_Line]:
    """Yields lines as pip sees them: continued ones joined, without comments."""
    waiting, begun = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        begun = begun if waiting else number
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            waiting += line[:-1] + " "
            continue
        whole = (waiting + ("" if is_comment else line)).strip()
        waiting = ""
        plain = re.sub(r"(^|\s)#.*$", "", whole).strip()
        if plain:
            yield _Line(plain, f"{path}:{begun}")
    if waiting.strip():
        yield _Line(waiting.strip(), f"{path}:{begun}")


class _PipParser(optparse.OptionParser):
    """A parser as pip has one: `-rfile`, `--requirem file` and quotes mean the same to both."""

    def error(self, msg: str) -> NoReturn:
        raise ValueError(msg)


def _options(line: _Line) -> Iterator[tuple[str, str]]:
    """Yields the options of a line, by their first names, and their values. Raises LockFileError
    for a line that pip does not take."""
    parser = _PipParser(add_help_option=False)
    for names in _OPTIONS:
        parser.add_option(*names, dest=names[0], action="append", default=[])
    for flag in _FLAGS:
        parser.add_option(flag, action="store_true")
    try:
        values, _ = parser.parse_args(shlex.split(line.text))
    except ValueError as error:
        raise LockFileError(f"{line.where}: {error}.") from error
    for names in _OPTIONS:
        yield from ((names[0], value) for value in getattr(values, names[0]))


def _beside(path: str, value: str, where: str) -> str:
    """Returns the path of an included file in the repository."""
    other = posixpath.normpath(posixpath.join(posixpath.dirname(path), value))
    if not value or ":" in value or other.startswith(("/", "../")) or other in {"..", "."}:
        raise LockFileError(f"{where}: -r {value[:80]} lies outside of the repository.")
    return other


def _named_by_address(text: str) -> str:
    """Returns the package that an address or a path names, '' if it names none."""
    file = text.partition("#")[0].rstrip().rpartition("/")[2]
    found = _EGG.search(text) or _WHEEL.match(file)
    return normal_name(found[1]) if found else ""


def _without_user(address: str) -> str:
    return re.sub(r"(?<=://)[^/@\s]+@", "", address.strip())[:80]
