"""The bucket that the environment configures: `TUNEGATE_TUNERS` names a file such as tunegate.yaml,
whose section `cache` counts."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from tunegate.config import CacheConfig
from tunegate.errors import ConfigError
from tunegate.review.config_file import load_config
from tunegate.system.cache.shared_cache import open_shared_store, signing_key
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol.trust import Trust
from tunegate_tuners.bucket import Bucket
from tunegate_tuners.lent_objects import Tool

VARIABLE = "TUNEGATE_TUNERS"


def configured_bucket(tool: Tool, *, holds_code: bool = False) -> Bucket:
    """Returns a tuner's bucket, the same for the whole process. If the tuner runs what it finds,
    every zone must have trusted keys. Raises ConfigError."""
    return _bucket_of(os.environ.get(VARIABLE, ""), tool, holds_code)


@cache
def _bucket_of(file: str, tool: Tool, holds_code: bool) -> Bucket:
    path = Path(file)
    if not path.is_absolute():
        raise ConfigError(f'{VARIABLE}: "{file}" is no absolute path. Name a tunegate.yaml.')
    return open_bucket(tool, load_config(path).cache, root=path.parent, holds_code=holds_code)


def open_bucket(tool: Tool, config: CacheConfig, *, root: Path, holds_code: bool) -> Bucket:
    """Returns a tuner's bucket in this cache; a relative directory is below `root`. Raises
    ConfigError."""
    keys, signer = TrustedKeys(config.trusted_keys), signing_key()
    zones = () if config.mode == "off" else (config.zone, *config.read_zones)
    unsigned = [zone for zone in zones if not keys.is_required(zone)] if holds_code else []
    if unsigned:
        raise ConfigError(
            f"cache.trusted-keys: {tool} runs what it finds in the cache, and nobody must sign "
            f"what is in zone {unsigned[0]}. Name the keys that may."
        )
    can_sign = signer is not None or not holds_code
    return Bucket(
        open_shared_store(config, root=root),
        tool,
        zone=config.zone if config.mode == "rw" and can_sign else None,
        read_zones=zones,
        trust=Trust(keys=keys, signer=signer),
    )
