"""`tunegate cache gc`: delete what the last compaction holds in another place."""

from __future__ import annotations

import time

import msgspec

from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.cache.gc import GcOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.errors import PASS
from tunegate_cache.maintenance.collection import Collection, collect


class Collections(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    dry_run: bool
    groups: tuple[Collection, ...]


def run(options: GcOptions) -> int:
    """Every zone, unless one is named."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        done = tuple(
            collect(
                admin.store,
                group,
                keys=admin.keys,
                now=int(time.time()),
                grace_seconds=int(options.grace_hours * 3600),
                dry_run=options.dry_run,
            )
            for group in admin.groups(settings.overrides.get("cache.zone"))
        )
    if settings.as_json:
        write_json(Collections(dry_run=options.dry_run, groups=done))
        return PASS
    verb = "would be deleted" if options.dry_run else "deleted"
    show_table(
        f"{admin.config.url}: {verb}",
        ("zone", "target", "segments", "packs, indexes, archives"),
        ((c.group.zone, c.group.target, c.segments, c.others) for c in done),
    )
    show_lines(f"{c.group.zone}: {problem}" for c in done for problem in c.problems)
    return PASS
