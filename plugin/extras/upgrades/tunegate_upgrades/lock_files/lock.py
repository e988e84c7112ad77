"""The content of a lock file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.errors import ConfigError

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_VERSION = re.compile(r"[0-9][A-Za-z0-9.+!_-]{0,99}")
_HASH = re.compile(r"sha(?:256|384|512):[0-9a-f]{64,128}")


class PinnedPackage(msgspec.Struct, frozen=True, kw_only=True):
    """One package in one version. `hashes` are like `sha256:…`, none if the file has none;
    `indexes` are its sources, none if the file names none; `where` is its place in the file, for
    messages."""

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    where: str = ""

    @property
    def decides(self) -> tuple[object, ...]:
        """Returns what decides which files are installed."""
        return self.name, self.version, tuple(sorted(self.hashes)), self.indexes


class LockFile(msgspec.Struct, frozen=True, kw_only=True):
    """The packages for this Python and platform. `refused` are those that are no pinned version
    from an index, by name, with the reason. `rest` is a digest of all that is written about them:
    a reason names an address in part. `for_others` are the packages for another Python or platform:
    each name, and all that is asked for."""

    path: str
    pins: Mapping[str, PinnedPackage]
    refused: Mapping[str, str] = {}
    rest: str = ""
    for_others: frozenset[tuple[str, str]] = frozenset()

    def decides(self) -> frozenset[tuple[object, ...]]:
        """Returns what decides an install: equal for two files that install the same."""
        pins = (pin.decides for pin in self.pins.values())
        return frozenset((*pins, *self.refused.items(), ("", self.rest)))


class LockFileError(ConfigError):
    """A lock file cannot be read, or is of an unknown kind."""


def normal_name(name: str) -> str:
    """Returns the name as indexes write it, by PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def as_lock(
    path: str,
    pins: Iterable[PinnedPackage],
    refused: Mapping[str, str],
    rest: Iterable[object] = (),
) -> LockFile:
    """Returns the lock with each package once: one that is named twice has the files of both. One
    pinned to two versions is rejected. `rest` is what is written about the refused ones. Raises
    LockFileError for an invalid name, version or hash: it could inject a line for pip."""
    found: dict[str, PinnedPackage] = {}
    bad = dict(refused)
    for pin in pins:
        _check_plain(pin)
        known = found.get(pin.name, pin)
        if known.version != pin.version:
            bad[pin.name] = f"{pin.where}: {pin.name} is pinned to {known.version} too"
        found[pin.name] = msgspec.structs.replace(
            known,
            hashes=tuple(dict.fromkeys((*known.hashes, *pin.hashes))),
            indexes=tuple(dict.fromkeys((*known.indexes, *pin.indexes))),
        )
    kept = {name: pin for name, pin in sorted(found.items()) if name not in bad}
    return LockFile(path=path, pins=kept, refused=bad, rest=digest_of_document([*rest]))


def _check_plain(pin: PinnedPackage) -> None:
    odd = [
        what
        for what, pattern in ((pin.name, _NAME), (pin.version, _VERSION))
        if not pattern.fullmatch(what)
    ]
    odd += [each for each in pin.hashes if not _HASH.fullmatch(each)]
    if odd:
        raise LockFileError(f"{pin.where}: no name, version or hash: {odd[0][:80]!r}.")
