"""The lock files that are TOML: `uv.lock`, `poetry.lock`, `pdm.lock`, and `pylock.toml` of
PEP 751."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate_upgrades.lock_files.lock import (
    LockFile,
    LockFileError,
    PinnedPackage,
    as_lock,
    normal_name,
)
from tunegate_upgrades.lock_files.markers import applies

_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class _Wheel(msgspec.Struct, frozen=True):
    hash: str = ""
    hashes: dict[str, str] = {}


class _Package(msgspec.Struct, frozen=True, rename="kebab"):
    """`source` and `resolution_markers` are uv's, the others those of PEP 751."""

    name: str
    version: str = ""
    source: dict[str, Any] = {}
    resolution_markers: tuple[str, ...] = ()
    marker: str = ""
    index: str = ""
    wheels: tuple[_Wheel, ...] = ()
    vcs: Any = None
    directory: Any = None
    archive: Any = None


class _UvLock(msgspec.Struct, frozen=True):
    version: int
    package: tuple[_Package, ...] = ()


class _PyLock(msgspec.Struct, frozen=True, rename="kebab"):
    lock_version: str
    packages: tuple[_Package, ...] = ()


def read_uv_lock(path: str, text: str) -> LockFile:
    """Reads the lock. Of several versions of a package, the one whose markers hold here counts.
    Raises LockFileError."""
    found, written = _decode(path, text, _UvLock)
    if found.version != 1:
        raise LockFileError(f"{path}: version {found.version} of uv.lock, and 1 is what is read.")
    return _as_lock(path, [(each, each.resolution_markers) for each in found.package], written)


def read_pylock(path: str, text: str) -> LockFile:
    """Reads the lock. Raises LockFileError."""
    found, written = _decode(path, text, _PyLock)
    if found.lock_version.partition(".")[0] != "1":
        raise LockFileError(f"{path}: lock-version {found.lock_version}, and 1 is what is read.")
    marked = [(each, (each.marker,) if each.marker else ()) for each in found.packages]
    return _as_lock(path, marked, written)


class _File(msgspec.Struct, frozen=True):
    hash: str = ""
    file: str = ""
    url: str = ""


class _ListedPackage(msgspec.Struct, frozen=True):
    """A package of poetry or pdm, which list its files. `source` and `markers` are poetry's, the
    others pdm's."""

    name: str
    version: str = ""
    files: tuple[_File, ...] = ()
    source: dict[str, Any] = {}
    markers: str | dict[str, str] = ""
    marker: str = ""
    git: Any = None
    path: Any = None
    url: Any = None


class _PoetryMetadata(msgspec.Struct, frozen=True, rename="kebab"):
    lock_version: str


class _PoetryLock(msgspec.Struct, frozen=True):
    metadata: _PoetryMetadata
    package: tuple[_ListedPackage, ...] = ()


class _PdmMetadata(msgspec.Struct, frozen=True):
    lock_version: str


class _PdmLock(msgspec.Struct, frozen=True):
    metadata: _PdmMetadata
    package: tuple[_ListedPackage, ...] = ()


def read_poetry_lock(path: str, text: str) -> LockFile:
    """Reads the lock. Raises LockFileError."""
    found, written = _decode(path, text, _PoetryLock)
    marked = _listed_packages(path, found.package, found.metadata.lock_version, "2")
    return _as_lock(path, marked, written)


def read_pdm_lock(path: str, text: str) -> LockFile:
    """Reads the lock. Raises LockFileError."""
    found, written = _decode(path, text, _PdmLock)
    marked = _listed_packages(path, found.package, found.metadata.lock_version, "4")
    return _as_lock(path, marked, written)


def _listed_packages(
    path: str, packages: tuple[_ListedPackage, ...], version: str, known_version: str
) -> list[_Marked]:
    if version.partition(".")[0] != known_version:
        raise LockFileError(f"{path}: lock version {version}, and {known_version} is what is read.")
    return [(_as_uv_package(each), _markers(each)) for each in packages]


def _markers(package: _ListedPackage) -> tuple[str, ...]:
    """Returns the markers, one of which must hold: poetry has one per group if they differ."""
    markers = package.markers
    found = (package.marker, *(markers.values() if isinstance(markers, dict) else (markers,)))
    return tuple(filter(None, found))


def _as_uv_package(package: _ListedPackage) -> _Package:
    """Returns the package as uv has it. A private index is what poetry calls a legacy source."""
    source = dict(package.source)
    kind, url = str(source.get("type", "")), str(source.get("url", ""))
    places = {"registry": url} if kind in {"legacy", "pypi"} else {kind: url} if kind else {}
    others = {"git": package.git, "path": package.path, "url": package.url}
    places |= {name: value for name, value in others.items() if value is not None}
    wheels = (each for each in package.files if (each.file or each.url).endswith(".whl"))
    return _Package(
        name=package.name,
        version=package.version,
        source=places,
        wheels=tuple(_Wheel(hash=each.hash) for each in wheels),
    )


_Marked = tuple[_Package, tuple[str, ...]]
"""A package, and the markers of which one must hold."""
_Written = Mapping[str, Any]
"""A lock file as it is written, with what is not read of its packages."""


def _decode(path: str, text: str, kind: type[_Kind]) -> tuple[_Kind, _Written]:
    try:
        written = tomllib.loads(text)
        return msgspec.convert(written, kind), written
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError
        problem = " ".join(str(error).split())[:200]
        raise LockFileError(f"{path}: cannot be read ({problem}).") from error


def _as_lock(path: str, marked: Sequence[_Marked], written: _Written) -> LockFile:
    """Returns the lock. Of a package that is refused every word counts as a change."""
    here, for_others = list[_Package](), set[tuple[str, str]]()
    for package, markers in marked:
        if _is_here(path, markers):
            here.append(package)
        else:
            asked = " ".join((package.version, *markers))
            for_others.add((normal_name(package.name), asked))
    refused = dict(_elsewhere(path, here))
    found = as_lock(path, _pins(path, here, refused), refused)
    lists = (each for key in ("package", "packages") if isinstance(each := written.get(key), list))
    tables = (each for tables in lists for each in tables if isinstance(each, dict))
    rest = [each for each in tables if normal_name(str(each.get("name"))) in found.refused]
    return msgspec.structs.replace(
        found, rest=digest_of_document(rest), for_others=frozenset(for_others)
    )


def _is_here(path: str, markers: tuple[str, ...]) -> bool:
    try:
        return not markers or any(map(applies, markers))
    except ValueError as error:
        raise LockFileError(f"{path}: {error}.") from error


def _elsewhere(path: str, packages: list[_Package]) -> Iterator[tuple[str, str]]:
    """Yields the packages that come from no index, and why each is rejected."""
    for each in packages:
        name = normal_name(each.name)
        places = {**each.source, **_other_places(each)}
        places.pop("registry", None)
        if places:
            yield name, f"{path}: {name} is taken from {_place(places)}"
        elif not each.version:
            yield name, f"{path}: {name} has no version"
        elif not each.wheels:
            yield name, f"{path}: {name} {each.version} has no wheel, and nothing else is installed"


def _other_places(package: _Package) -> dict[str, Any]:
    given = {"vcs": package.vcs, "directory": package.directory, "archive": package.archive}
    return {name: value for name, value in given.items() if value is not None}


def _place(places: Mapping[str, Any]) -> str:
    kind, value = next(iter(places.items()))
    shown = value if isinstance(value, str) else ""
    words = {"git": "a repository", "vcs": "a repository", "url": "an address"}
    what = words.get(kind, "a file or a directory")
    return f"{what} ({shown.rpartition('@')[2][:80]})" if shown else what


def _pins(
    path: str, packages: list[_Package], refused: Mapping[str, str]
) -> Iterator[PinnedPackage]:
    for each in packages:
        name = normal_name(each.name)
        if name in refused:
            continue
        registry = each.source.get("registry", each.index)
        yield PinnedPackage(
            name=name,
            version=each.version,
            hashes=tuple(_hashes(each.wheels)),
            indexes=(registry,) if isinstance(registry, str) and registry else (),
            where=path,
        )


def _hashes(wheels: tuple[_Wheel, ...]) -> Iterator[str]:
    for wheel in wheels:
        if wheel.hash:
            yield wheel.hash
        elif "sha256" in wheel.hashes:
            yield f"sha256:{wheel.hashes['sha256']}"
