"""`tunegate.lock`: which snapshot of the cache a repository builds with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from tunegate.artifacts.changes import PolicyChange
from tunegate.errors import ConfigError
from tunegate.regular_files import read_regular
from tunegate.system.git.repository import GitRepository
from tunegate_cache.format.names import Group

PINS_FILE = "tunegate.lock"


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`target` is the start of the target key, `index` the digest of a snapshot's index."""

    zone: str
    target: str
    version: int
    index: str


class PinFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: Literal[1] = 1
    pins: tuple[Pin, ...]


SnapshotPins = Mapping[Group, str]
"""The pinned snapshot of each group of a cache."""


def read_pins(root: Path) -> SnapshotPins:
    """Empty where the repository has no lock file. Raises ConfigError."""
    path = root / PINS_FILE
    try:
        body = read_regular(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error
    return parse_pins(body, str(path))


def own_pins(repository: GitRepository) -> SnapshotPins:
    """Those of the checkout: the file as it is here, or as committed where it is not, as in a
    sparse checkout. Raises ConfigError."""
    if (repository.root / PINS_FILE).exists():
        return read_pins(repository.root)
    return pins_at(repository, repository.head())


def pins_at(repository: GitRepository, revision: str) -> SnapshotPins:
    """Those of a revision; none where they cannot be read: then the latest snapshots count, which
    know the most. Raises RevisionError where the content cannot be fetched."""
    entry = repository.entry(revision, PINS_FILE)
    if entry is None or entry.kind != "file":
        return {}
    try:
        return parse_pins(repository.read(revision, PINS_FILE), PINS_FILE)
    except ConfigError:
        return {}


def pinned_otherwise(own: SnapshotPins, judging: SnapshotPins) -> PolicyChange:
    """Returns the policy change of a head whose pins differ from the judging ones."""
    return PolicyChange(
        key=PINS_FILE,
        old=_pinned(judging),
        new=_pinned(own),
        effect="changed",
        counts="once merged",
    )


def _pinned(pins: SnapshotPins) -> str:
    shown = (f"{group.zone}/{group.target[:12]} {index[:12]}" for group, index in pins.items())
    return ", ".join(sorted(shown)) or "no pins"


def parse_pins(body: bytes, path: str) -> SnapshotPins:
    """`path` names the file in messages. Raises ConfigError."""
    try:
        pinned = msgspec.json.decode(body, type=PinFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{path}: {error}. Write it anew with tunegate cache pin."
        raise ConfigError(message) from error
    return {Group(pin.zone, pin.target): pin.index for pin in pinned.pins}


def write_pins(root: Path, pins: tuple[Pin, ...]) -> Path:
    """Raises ConfigError where the file cannot be written."""
    path = root / PINS_FILE
    body = msgspec.json.format(msgspec.json.encode(PinFile(pins=pins)), indent=2)
    try:
        path.write_bytes(body + b"\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}).") from error
    return path
