"""The remote cache of helion: `HELION_REMOTE_CACHE_BACKEND=tunegate_tuners.helion.HelionBackend`.

helion stores one text of JSON for a kernel, its inputs and the device: the best configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from helion.autotuner.remote_cache import RemoteCacheBackend

from tunegate_tuners.configured import configured_bucket

_FILE = "best_config"
_MAX_LISTED = 1000


class HelionBackend(RemoteCacheBackend):  # type: ignore[misc] # helion is not installed with us
    """Keeps helion's configurations in the cache. Invalid ones are misses: helion would end with a
    traceback."""

    def __init__(self) -> None:
        self._bucket = configured_bucket("helion")

    def get(self, key: str) -> str | None:
        content = self._bucket.get(key, [_FILE]).get(_FILE)
        return None if content is None else _entry(content)

    def put(self, key: str, data: str) -> None:
        self._bucket.put(key, _FILE, data.encode())

    def list(self, max_results: int | None = None) -> Iterable[str]:
        limit = _MAX_LISTED if max_results is None else max_results
        entries = map(_entry, self._bucket.recent(limit).values())
        return [entry for entry in entries if entry is not None]


def _entry(content: bytes) -> str | None:
    """Returns the text of an entry whose `config` is an object in JSON, else None."""
    try:
        text = content.decode()
        entry = json.loads(text)
        is_entry = isinstance(entry, dict) and isinstance(json.loads(entry["config"]), dict)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return text if is_entry else None
