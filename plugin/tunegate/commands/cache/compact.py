"""`tunegate cache compact`: gather segments, so that look-ups need few requests."""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.cache.compact import CompactOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.errors import PASS
from tunegate.settings import Settings
from tunegate_cache.maintenance.compaction import Compaction


class Compactions(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    groups: tuple[Compaction, ...]


def run(options: CompactOptions) -> int:
    """Every zone, unless one is named."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        groups = admin.groups(settings.overrides.get("cache.zone"))
        done = tuple(admin.compactor(group).run() for group in groups)
    show_compactions(settings, admin.config.url, done)
    return PASS


def show_compactions(settings: Settings, url: str, done: tuple[Compaction, ...]) -> None:
    if settings.as_json:
        write_json(Compactions(groups=done))
        return
    show_table(
        url,
        ("zone", "target", "", "version", "segments", "records", "tasks", "recovered"),
        (
            (
                c.group.zone,
                c.group.target,
                c.status,
                c.version,
                c.segments,
                c.records,
                c.workloads,
                c.recovered,
            )
            for c in done
        ),
    )
    show_lines(f"{c.group.zone}: {problem}" for c in done for problem in c.problems)
