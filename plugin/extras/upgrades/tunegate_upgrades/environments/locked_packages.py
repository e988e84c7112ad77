"""The packages of a lock file that a runtime needs: all pinned, and from an accepted index."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tunegate_upgrades.environments.uv import Uv
from tunegate_upgrades.lock_files.lock import LockFile, LockFileError, PinnedPackage, normal_name

PYPI = "https://pypi.org/simple"


def needed_pins(
    lock: LockFile, roots: Sequence[str], uv: Uv, indexes: Sequence[str]
) -> tuple[PinnedPackage, ...]:
    """Returns the pins of the roots and of their requirements, by their wheels. `indexes` are the
    configuration's. Raises LockFileError for a package that is no pinned wheel from one of them,
    and UvError for one that cannot be had."""
    for name in roots:
        if name in lock.refused:
            raise LockFileError(f"{lock.refused[name]}.")
        if name not in lock.pins:
            raise LockFileError(f"{lock.path} pins no {name}.")
    pins = {name: pin.version for name, pin in lock.pins.items()}
    found = uv.resolve({name: pins[name] for name in roots}, pins)
    pinned = [_pin(lock, normal_name(name)) for name in sorted(found)]
    _check_hashes(lock, pinned)
    _check_indexes(pinned, indexes or (PYPI,))
    return tuple(pinned)


def _check_indexes(pins: Sequence[PinnedPackage], indexes: Sequence[str]) -> None:
    allowed = {_plain(each) for each in indexes}
    others = [(pin, index) for pin in pins for index in pin.indexes if _plain(index) not in allowed]
    for pin, index in others:
        message = f"{pin.where}: {pin.name} is from {index[:100]}, which is not in watch.indexes."
        raise LockFileError(message)


def _pin(lock: LockFile, name: str) -> PinnedPackage:
    if name in lock.refused:
        raise LockFileError(f"{lock.refused[name]}.")
    pin = lock.pins.get(name)
    if pin is None:
        message = (
            f"{lock.path}: {name} is needed and not pinned. Pin all that is installed, as "
            f"uv pip compile does."
        )
        raise LockFileError(message)
    return pin


def _check_hashes(lock: LockFile, pins: Sequence[PinnedPackage]) -> None:
    """Raises LockFileError for an installed package without a hash, if the file has any."""
    bare = [pin for pin in pins if not pin.hashes]
    if bare and any(pin.hashes for pin in lock.pins.values()):
        message = f"{bare[0].where}: {bare[0].name} has no hash, and others have."
        raise LockFileError(message)


def _plain(index: str) -> str:
    """Returns the address without a password and the last slash."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", index).rstrip("/").lower()
