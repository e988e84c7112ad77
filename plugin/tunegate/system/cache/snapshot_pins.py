"""`tunegate.lock`: the cache snapshots that a repository builds with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.artifacts.changes import PolicyChange
from tunegate.errors import ConfigError
from tunegate.regular_files import read_regular, replace
from tunegate.system.git.repository import GitRepository
from tunegate_cache.format.names import Group

PINS_FILE = "tunegate.lock"


class Pin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`target` is the beginning of the target key, `index` the digest of a snapshot's index."""

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
    """Returns the pins, none without a lock file. Raises ConfigError."""
    path = root / PINS_FILE
    try:
        body = read_regular(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error
    return parse_pins(body, str(path))


def own_pins(repository: GitRepository) -> SnapshotPins:
    """Returns the checkout's pins: of the file as it is here, or as committed if it is absent, as
    in a sparse checkout. Raises ConfigError."""
    if (repository.root / PINS_FILE).exists():
        return read_pins(repository.root)
    return pins_at(repository, repository.head())


def pins_at(repository: GitRepository, revision: str) -> SnapshotPins:
    """Returns a revision's pins; none if they are invalid: then the latest snapshots count, which
    know most. Raises RevisionError if the content cannot be fetched."""
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
        old=_pins_text(judging),
        new=_pins_text(own),
        effect="changed",
        counts="once merged",
    )


def _pins_text(pins: SnapshotPins) -> str:
    texts = (f"{group.zone}/{group.target[:12]} {index[:12]}" for group, index in pins.items())
    return ", ".join(sorted(texts)) or "no pins"


def parse_pins(body: bytes, path: str) -> SnapshotPins:
    """Parses pins; `path` names the file in messages. Raises ConfigError."""
    try:
        file = msgspec.json.decode(body, type=PinFile)
    except NOT_JSON as error:
        message = f"{path}: {error}. Write it anew with tunegate cache pin."
        raise ConfigError(message) from error
    return {Group(pin.zone, pin.target): pin.index for pin in file.pins}


def write_pins(root: Path, pins: tuple[Pin, ...]) -> Path:
    """Writes the pins, in place of a link, too. Raises ConfigError if they cannot be written."""
    path = root / PINS_FILE
    body = msgspec.json.format(msgspec.json.encode(PinFile(pins=pins)), indent=2)
    try:
        replace(path, body + b"\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}).") from error
    return path
