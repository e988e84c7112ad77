"""`tunegate cache fsck`: read everything, say what is broken, mend what can be mended."""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import CacheAdmin, answering, open_cache_admin
from tunegate.cli.commands.cache.fsck import FsckOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.errors import PASS, UNFIT
from tunegate_cache.maintenance.compaction import Compaction
from tunegate_cache.maintenance.consistency import Flaw, broken_segments, flaws


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """`left` are the flaws after the repair; the same as `found` without one."""

    schema: int = 1
    found: tuple[Flaw, ...]
    repairs: tuple[Compaction, ...]
    left: tuple[Flaw, ...]


def run(options: FsckOptions) -> int:
    """Exit code 4 when something is broken, and still is after a repair."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        found = _flaws(admin, settings.overrides.get("cache.zone"))
        repairs = _repaired(admin, found) if options.repair else ()
        left = _flaws(admin, settings.overrides.get("cache.zone")) if options.repair else found
    if settings.as_json:
        write_json(Inspection(found=found, repairs=repairs, left=left))
    else:
        _show(admin.config.url, left, repaired=len(found) - len(left), repair=options.repair)
    return UNFIT if left else PASS


def _flaws(admin: CacheAdmin, zone: str | None) -> tuple[Flaw, ...]:
    return tuple(
        flaw for group in admin.groups(zone) for flaw in flaws(admin.store, group, admin.keys)
    )


def _repaired(admin: CacheAdmin, found: tuple[Flaw, ...]) -> tuple[Compaction, ...]:
    """Deletes segments that the store returns damaged, and compacts the groups with flaws: a
    compaction restores all else from the archives. All else a compaction makes anew from the
    archives."""
    for name in broken_segments(list(found)):
        admin.store.delete(name)
    groups = dict.fromkeys(flaw.group for flaw in found)
    return tuple(admin.compactor(group).run(rebuild=True) for group in groups)


def _show(url: str, left: tuple[Flaw, ...], *, repaired: int, repair: bool) -> None:
    if left:
        show_table(
            url,
            ("zone", "target", "", "what", "object"),
            ((f.group.zone, f.group.target, f.kind, f.what, f.name) for f in left),
        )
    if repaired:
        show_lines([f"{repaired} flaws were repaired"])
    if not left:
        show_lines([f"{url}: everything is there and is what it should be"])
    elif not repair:
        show_lines(["tunegate cache fsck --repair mends what can be mended"])
