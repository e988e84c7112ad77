"""`tunegate cache stats`: what the cache holds, by zone and target."""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.cache.stats import StatsOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_table
from tunegate.errors import PASS
from tunegate_cache.maintenance.summary import GroupSummary, summary


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    location: str
    contents: tuple[GroupSummary, ...]


def run(options: StatsOptions) -> int:
    """Works without a configuration too: then it is the default cache."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        contents = summary(admin.store)
    if settings.as_json:
        write_json(Statistics(location=admin.config.url, contents=contents))
    else:
        _show(admin.config.url, contents)
    return PASS


def _show(location: str, contents: tuple[GroupSummary, ...]) -> None:
    show_table(
        location,
        (
            "zone",
            "target",
            "version",
            "segments",
            "archived",
            "records",
            "tasks",
            "failed",
            "bytes",
        ),
        (
            (
                row.zone,
                row.target,
                row.version,
                row.segments,
                row.archived,
                row.records,
                row.workloads,
                row.failures,
                row.size_bytes,
            )
            for row in contents
        ),
    )
