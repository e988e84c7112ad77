"""The check whether a failure came from a full disk.

A compiler, or ONNX Runtime, that could not write a file says that the model is
broken; so the disks are asked.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from tunegate.errors import CancelledError, ConfigError, EnvironmentUnfitError, RevisionError

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_FULL_BYTES = 1024**2


def as_full_disk(error: Exception, directories: Sequence[Path]) -> Exception:
    """Returns the error itself, or, where a disk is full, an error about that. `directories` are
    what the run writes to. A cancelled run, and what the user can mend, stay what they are."""
    if isinstance(error, (CancelledError, ConfigError, RevisionError)):
        return error
    lacking = next((e for e in _chain(error) if e.errno in _NO_ROOM), None)
    full = next((place for place in directories if _free_bytes(place) < _FULL_BYTES), None)
    if lacking is None and full is None:
        return error
    where = full or (lacking.filename if lacking is not None else None)
    return EnvironmentUnfitError(
        f"a disk is full{f', that of {where}' if where else ''} ({_said(error)}). What was "
        "finished is kept. Make room, or choose another place with --out or TMPDIR, and run again."
    )


def _chain(error: BaseException | None) -> Iterator[OSError]:
    while error is not None:
        if isinstance(error, OSError):
            yield error
        error = error.__cause__ or error.__context__


def _free_bytes(place: Path) -> int:
    """The free bytes of the disk that has the file, or would have it."""
    existing = next(p for p in (place.absolute(), *place.absolute().parents) if p.exists())
    return shutil.disk_usage(existing).free


def _said(error: Exception) -> str:
    first, *_ = [*str(error).splitlines(), type(error).__name__]
    return first.rstrip(".")
