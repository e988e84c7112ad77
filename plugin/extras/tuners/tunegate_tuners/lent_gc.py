"""`tunegate lent-gc`: counts other tuners' objects, and deletes those that are superseded, old or
over a zone's quota."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

import msgspec

from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_table
from tunegate.errors import PASS
from tunegate_cache.format.names import OBJECT_ROOT
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.stores.store import ObjectNotFoundError, ObjectStore
from tunegate_tuners.bucket import MAX_CLOCK_SKEW_MS, MAX_CONTENT_BYTES, distrust
from tunegate_tuners.command import LentGcOptions
from tunegate_tuners.lent_objects import LentObject, lent_objects

_GRACE_MS = 3_600_000
"""A reader may have listed an object that was superseded since."""
_LARGEST_SIGNATURE = 256


class LentCount(msgspec.Struct, frozen=True, kw_only=True):
    """One tuner's objects in a zone, and those that were or would be deleted."""

    zone: str
    tool: str
    objects: int
    bytes: int
    deleted: int


class LentCounts(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    dry_run: bool
    counts: tuple[LentCount, ...]


def run(options: LentGcOptions) -> int:
    """Collects every zone, or the named one."""
    settings = options.settings
    admin = open_cache_admin(settings)
    zone = settings.overrides.get("cache.zone")
    with answering(admin.config):
        max_bytes = int(options.max_gb * 1e9)
        prefix = f"{OBJECT_ROOT}/z/{zone}/lent/" if zone else f"{OBJECT_ROOT}/z/"
        found = list(lent_objects(admin.store.names(prefix)))
        unneeded = unneeded_objects(
            found,
            now_ms=int(time.time() * 1000),
            days=options.days,
            max_bytes=max_bytes,
            untrusted=untrusted_objects(found, admin.store, admin.keys, max_bytes),
        )
        if not options.dry_run:
            for each in unneeded:
                admin.store.delete(each.name)
    counts = count_by_tool(found, unneeded)
    if settings.as_json:
        write_json(LentCounts(dry_run=options.dry_run, counts=counts))
        return PASS
    verb = "would be deleted" if options.dry_run else "deleted"
    show_table(
        admin.location,
        ("zone", "tuner", "objects", "MB", verb),
        ((c.zone, c.tool, c.objects, f"{c.bytes / 1e6:.1f}", c.deleted) for c in counts),
    )
    return PASS


def unneeded_objects(
    objects: Iterable[LentObject],
    *,
    now_ms: int,
    days: float,
    max_bytes: int,
    untrusted: Collection[LentObject] = (),
) -> list[LentObject]:
    """Returns the objects that are superseded by a newer one, older than `days` or from the future,
    and the oldest of a zone with more than `max_bytes`. What no reader takes, being `untrusted`,
    supersedes nothing that one takes, and goes first."""
    by_age = sorted(objects, key=lambda each: (each in untrusted, -each.milliseconds))
    oldest_ms = now_ms - days * 86_400_000
    newer_ms: dict[str, int] = {}
    kept_bytes: Counter[str] = Counter()
    unneeded = []
    for each in by_age:
        if each.milliseconds > now_ms + MAX_CLOCK_SKEW_MS:  # no reader takes it
            unneeded.append(each)
            continue
        superseded_ms = newer_ms.get(each.place)
        newer_ms[each.place] = each.milliseconds
        is_superseded = superseded_ms is not None and superseded_ms < now_ms - _GRACE_MS
        if (
            is_superseded
            or each.milliseconds < oldest_ms
            or kept_bytes[each.zone] + each.size > max_bytes
        ):
            unneeded.append(each)
        else:
            kept_bytes[each.zone] += each.size
    return unneeded


def untrusted_objects(
    objects: Iterable[LentObject], store: ObjectStore, keys: TrustedKeys, max_bytes: int
) -> set[LentObject]:
    """Returns the objects that no reader takes, in zones whose content must be signed. Objects are
    read only where that decides: the newest of several in a place, and all of a zone with more than
    `max_bytes`. Whoever may write, and not delete, could else have what is signed deleted."""
    untrusted = set()
    by_zone: defaultdict[str, list[LentObject]] = defaultdict(list)
    for each in objects:
        if keys.is_required(each.zone):
            by_zone[each.zone].append(each)
    for found in by_zone.values():
        is_over = sum(each.size for each in found) > max_bytes
        in_order = sorted(found, key=lambda each: (each.place, -each.milliseconds))
        for _, group in groupby(in_order, key=lambda each: each.place):
            rivals = list(group)
            for each in rivals if is_over or len(rivals) > 1 else ():
                if distrust(each, _body(store, each), keys):
                    untrusted.add(each)
                elif not is_over:
                    break
    return untrusted


def _body(store: ObjectStore, name: LentObject) -> bytes:
    """Returns the object as far as its name says that it goes: a larger one is not what it says."""
    try:
        return store.read_part(name.name, 0, min(name.size, MAX_CONTENT_BYTES) + _LARGEST_SIGNATURE)
    except ObjectNotFoundError:
        return b""


def count_by_tool(
    lent: Sequence[LentObject], unneeded: Sequence[LentObject]
) -> tuple[LentCount, ...]:
    """Returns what each tuner has in each zone, and how much of it is unneeded."""
    objects = Counter((each.zone, each.tool) for each in lent)
    deleted = Counter((each.zone, each.tool) for each in unneeded)
    sizes: Counter[tuple[str, str]] = Counter()
    for each in lent:
        sizes[each.zone, each.tool] += each.size
    return tuple(
        LentCount(
            zone=zone,
            tool=tool,
            objects=count,
            bytes=sizes[zone, tool],
            deleted=deleted[zone, tool],
        )
        for (zone, tool), count in sorted(objects.items())
    )
