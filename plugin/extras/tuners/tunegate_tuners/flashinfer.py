"""FlashInfer's autotune cache (`autotune_v2`), which is a directory: filled before, shared after.

    <root>/v2/<environment>/entries/<operation>.json

FlashInfer checks that an entry is of the operation that it is asked for, and of its environment.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tunegate_tuners.bucket import Bucket
from tunegate_tuners.configured import configured_bucket

_SCHEMA, _ENTRIES = "v2", "entries"
_ENVIRONMENT, _OPERATION = re.compile("[0-9a-f]{16}"), re.compile("[0-9a-f]{24}")
_MAX_ENTRIES = 5000
_MAX_ENTRY_BYTES = 64 * 1024

Entries = Mapping[tuple[str, str], bytes]
"""The content of each entry, by environment and operation."""


@contextmanager
def shared_autotune(root: Path) -> Iterator[Path]:
    """Fills `root` with what others have tuned, and shares at the end what was tuned meanwhile.
    Entries that are there already stay: they were tuned here.

        with shared_autotune(root), autotune_v2(cache_root=root):
            model(inputs)
    """
    bucket = configured_bucket("flashinfer")
    before = {**_read_entries(root), **pull(bucket, root)}
    try:
        yield root
    finally:
        push(
            bucket,
            {at: entry for at, entry in _read_entries(root).items() if before.get(at) != entry},
        )


def pull(bucket: Bucket, root: Path) -> Entries:
    """Writes the entries of the bucket that `root` lacks, and returns them."""
    pulled: dict[tuple[str, str], bytes] = {}
    for (environment, operation), content in bucket.recent(_MAX_ENTRIES).items():
        path = root / _SCHEMA / environment / _ENTRIES / f"{operation}.json"
        if _is_entry(environment, operation, content) and not path.exists():
            with suppress(OSError):
                _write(path, content)
                pulled[environment, operation] = content
    return pulled


def push(bucket: Bucket, entries: Entries) -> None:
    """Writes entries to the bucket."""
    for environment in {each for each, _ in entries}:
        bucket.put_all(
            environment, {op: entry for (env, op), entry in entries.items() if env == environment}
        )


def _read_entries(root: Path) -> Entries:
    paths = (root / _SCHEMA).glob(f"*/{_ENTRIES}/*.json")
    found = {}
    for path in paths:
        at = (path.parents[1].name, path.stem)
        with suppress(OSError):
            content = path.read_bytes()
            if _is_entry(*at, content):
                found[at] = content
    return found


def _is_entry(environment: str, operation: str, content: bytes) -> bool:
    """Returns whether this is an entry of that name, as FlashInfer itself checks it."""
    if not _ENVIRONMENT.fullmatch(environment) or not _OPERATION.fullmatch(operation):
        return False
    if len(content) > _MAX_ENTRY_BYTES:
        return False
    try:
        entry = json.loads(content)
        key, runner = entry["key"], entry["runner"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    if not isinstance(key, str) or not isinstance(runner, str) or "tactic" not in entry:
        return False
    digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()
    return digest.startswith(operation)


def _write(path: Path, content: bytes) -> None:
    """A reader sees all of the file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(partial).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(partial).unlink()
        raise
