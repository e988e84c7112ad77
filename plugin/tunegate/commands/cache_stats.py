"""`tunegate cache stats`: what the cache holds, by zone and target."""

from __future__ import annotations

from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from tunegate.commands.standard_output import write_json
from tunegate.config import CacheConfig, Config, ModelConfig
from tunegate.edges import config_file
from tunegate.edges.cache_contents import cache_contents
from tunegate.edges.git import GitRepository
from tunegate.errors import PASS, ConfigError, RevisionError
from tunegate.settings import Settings, overridden
from tunegate_cache.summary import PlaceSummary


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    location: str
    contents: tuple[PlaceSummary, ...]


def run(settings: Settings) -> int:
    """Works without a configuration too: then it is the default cache."""
    config, root = _config(settings)
    contents = cache_contents(config, root=root)
    if settings.as_json:
        write_json(Statistics(location=config.url, contents=contents))
    else:
        _show(config.url, contents)
    return PASS


def _config(settings: Settings) -> tuple[CacheConfig, Path]:
    try:
        root = GitRepository(settings.repository).root
        loaded = config_file.load(settings.config or root / config_file.NAME)
    except (RevisionError, ConfigError):
        if settings.config is not None:
            raise
        root, loaded = settings.repository, Config(models=(ModelConfig(path="**"),))
    return overridden(loaded, settings.overrides).cache, root


def _show(location: str, contents: tuple[PlaceSummary, ...]) -> None:
    table = Table(
        "zone", "target", "segments", "records", "workloads", "failed", "bytes", title=location
    )
    for row in contents:
        table.add_row(
            row.zone,
            row.target[:12],
            str(row.segments),
            str(row.records),
            str(row.workloads),
            str(row.failures),
            str(row.size_bytes),
        )
    Console().print(table)
