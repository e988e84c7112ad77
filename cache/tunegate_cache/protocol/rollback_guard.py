"""The latest version of every HEAD that this machine has seen: an older one is not trusted."""

from contextlib import suppress
from pathlib import Path

import msgspec

from tunegate_cache.format.names import Group
from tunegate_cache.format.validate import NOT_JSON


class RollbackGuard:
    """Remembers versions in a small local file, or in this process if there is none."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._versions = _read_versions(file)

    def is_older(self, group: Group, version: int, latest: int) -> bool:
        """Returns whether a later version was seen before; otherwise remembers this one. No
        compaction makes a version after `latest` (seconds since 1970): it would make all others
        older for ever, so it is neither remembered nor believed."""
        seen = self._versions.get(group.prefix, 0)
        newest = seen if seen <= latest else 0
        if newest < version <= latest:
            self._versions[group.prefix] = version
            self._write()
        return version < newest

    def _write(self) -> None:
        if self._file is None:
            return
        # Without the file a roll-back goes unnoticed here: no reason to stop a run.
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial = self._file.with_suffix(".partial")
            partial.write_bytes(msgspec.json.encode(self._versions))
            partial.replace(self._file)


def _read_versions(file: Path | None) -> dict[str, int]:
    if file is None:
        return {}
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, int])
    except (OSError, *NOT_JSON):
        return {}
