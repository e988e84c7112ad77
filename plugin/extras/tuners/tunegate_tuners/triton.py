"""Triton's remote cache: `TRITON_CACHE_MANAGER=triton.runtime.cache:RemoteCacheManager` and
`TRITON_REMOTE_CACHE_BACKEND=tunegate_tuners.triton:TritonBackend`.

Triton stores compiled kernels, and loads what it finds: machine code. So only signed objects count.
"""

from __future__ import annotations

from triton.runtime.cache import RemoteCacheBackend

from tunegate_tuners.configured import configured_bucket


class TritonBackend(RemoteCacheBackend):  # type: ignore[misc] # triton is not installed with us
    """Keeps Triton's files in the cache; `key` is of one kernel, its options and the compiler."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._bucket = configured_bucket("triton", holds_code=True)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        return self._bucket.get(self._key, filenames)

    def put(self, filename: str, data: bytes) -> None:
        self._bucket.put(self._key, filename, data)
