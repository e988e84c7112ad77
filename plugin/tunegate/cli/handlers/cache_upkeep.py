"""The upkeep of the cache: `tunegate cache compact`, `gc`, `fsck`, `revoke` and `pin`."""

import time
from collections.abc import Iterator, Sequence

import msgspec

from tunegate.cli.commands import cache
from tunegate.cli.handlers.cache_admin import CacheAdmin, answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.errors import PASS, UNFIT, ConfigError, EnvironmentUnfitError
from tunegate.settings import Settings
from tunegate.system.cache.snapshot_pins import PINS_FILE, Pin, write_pins
from tunegate.wording import plural
from tunegate_cache.format.names import Group
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.maintenance.collection import Collection, collect
from tunegate_cache.maintenance.compaction import Compaction
from tunegate_cache.maintenance.consistency import Flaw, flaws
from tunegate_cache.protocol import group_state
from tunegate_cache.protocol.snapshots import snapshot_problem
from tunegate_cache.stores.conformance import reading_problem

_MOST_TRIES = 10
"""The most times that a revocation is tried while other compactions move HEAD."""

# `tunegate cache compact`: merges segments, so that look-ups need few requests.


class Compactions(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    groups: tuple[Compaction, ...]
    unread: tuple[str, ...] = ()


def compact(options: cache.CacheOptions) -> int:
    """Compacts every zone, or the named one."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        compactions, unread = admin.of_each_group(
            settings.overrides.get("cache.zone"), lambda group: admin.compactor(group).run()
        )
    return show_compactions(settings, admin.location, compactions, unread)


def show_compactions(
    settings: Settings,
    url: str,
    compactions: tuple[Compaction, ...],
    unread: tuple[str, ...],
    summary: tuple[str, ...] = (),
) -> int:
    """Returns the exit code: 4 if a group could not be read or written. `summary` is for people."""
    code = UNFIT if unread or any(each.status == "refused" for each in compactions) else PASS
    if settings.as_json:
        write_json(Compactions(groups=compactions, unread=unread))
        return code
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
            for c in compactions
        ),
    )
    show_lines((*_problems(compactions), *unread, *summary))
    return code


def _problems(groups: Sequence[Compaction | Collection]) -> Iterator[str]:
    return (f"{each.group.zone}: {problem}" for each in groups for problem in each.problems)


# `tunegate cache gc`: deletes what the last compaction holds elsewhere.


class Collections(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    dry_run: bool
    groups: tuple[Collection, ...]
    unread: tuple[str, ...] = ()


def collect_garbage(options: cache.GcOptions) -> int:
    """Collects garbage of every zone, or of the named one. Returns 4 if something could not be
    read."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        collections, unread = admin.of_each_group(
            settings.overrides.get("cache.zone"),
            lambda group: collect(
                admin.store,
                group,
                keys=admin.keys,
                now=int(time.time()),
                grace_seconds=int(options.grace_hours * 3600),
                dry_run=options.dry_run,
            ),
        )
    code = UNFIT if unread or any(each.problems for each in collections) else PASS
    if settings.as_json:
        write_json(Collections(dry_run=options.dry_run, groups=collections, unread=unread))
        return code
    verb = "would be deleted" if options.dry_run else "deleted"
    show_table(
        f"{admin.location}: {verb}",
        ("zone", "target", "segments", "packs, indexes, archives"),
        ((c.group.zone, c.group.target, c.segments, c.others) for c in collections),
    )
    show_lines((*_problems(collections), *unread))
    return code


# `tunegate cache fsck`: reads everything, reports what is broken, repairs what can be repaired.


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """`left` are the flaws after the repair; the same as `found` without one."""

    schema: int = 1
    found: tuple[Flaw, ...]
    repairs: tuple[Compaction, ...]
    left: tuple[Flaw, ...]
    unread: tuple[str, ...] = ()


def check(options: cache.FsckOptions) -> int:
    """Checks the cache. Returns 4 if something is broken, even after a repair."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        groups, unread = admin.of_each_group(
            settings.overrides.get("cache.zone"),
            lambda group: _inspect(admin, group, is_repaired=options.repair),
        )
    whole = Inspection(
        found=tuple(flaw for each in groups for flaw in each.found),
        repairs=tuple(done for each in groups for done in each.repairs),
        left=tuple(flaw for each in groups for flaw in each.left),
        unread=unread,
    )
    if settings.as_json:
        write_json(whole)
    else:
        show_lines(unread)
        if whole.left or not unread:
            _show(admin.location, whole, repair=options.repair, groups=len(groups))
    return UNFIT if whole.left or unread else PASS


def _inspect(admin: CacheAdmin, group: Group, *, is_repaired: bool) -> Inspection:
    found = tuple(flaws(admin.store, group, admin.keys))
    if not (found and is_repaired):
        return Inspection(found=found, repairs=(), left=found)
    repairs = (repair(admin, group, found),)
    return Inspection(
        found=found, repairs=repairs, left=tuple(flaws(admin.store, group, admin.keys))
    )


def repair(admin: CacheAdmin, group: Group, flaws: tuple[Flaw, ...]) -> Compaction:
    """Deletes segments that the store returns damaged, and compacts the group: that restores the
    rest from the archives. Raises EnvironmentUnfitError if a store, or a gateway before it, damages
    whatever it returns: what is stored may be whole."""
    broken = [flaw.name for flaw in flaws if flaw.kind == "segment" and "signed" not in flaw.what]
    problem = reading_problem(admin.store) if broken else ""
    if problem:
        message = (
            f"nothing was repaired: {admin.location} does not return what is written ({problem}). "
            "Run tunegate cache probe."
        )
        raise EnvironmentUnfitError(message)
    compactor = admin.compactor(group)
    for name in broken:
        admin.store.delete(name)
    return compactor.run(rebuild=True)


def _show(url: str, inspection: Inspection, *, repair: bool, groups: int) -> None:
    flaws = inspection.left
    repairs = len(set(inspection.found) - set(flaws))
    if flaws:
        show_table(
            url,
            ("zone", "target", "", "what", "object"),
            ((f.group.zone, f.group.target, f.kind, f.what, f.name) for f in flaws),
        )
    if repairs:
        show_lines([f"{plural(repairs, 'flaw')} repaired"])
    show_lines(_problems(inspection.repairs))
    if not groups:
        show_lines([f"{url}: no tuning results are there"])
    elif not flaws:
        show_lines([f"{url}: every object is there and intact"])
    elif not repair:
        show_lines(
            ["tunegate cache fsck --repair repairs all but unsigned segments, which count nowhere"]
        )


# `tunegate cache revoke`: stops trusting some records.


def revoke(options: cache.RevokeOptions) -> int:
    """Revokes records in every zone, or in the named one. A rule without a key or a run ends now:
    a repaired runner goes on measuring. Raises ConfigError for a rule that matches nothing."""
    revocation = Revocation(
        key=options.key,
        repository=options.of_repository,
        run=options.run,
        since=options.since or 0,
        until=options.until or 0,
    )
    if revocation == Revocation():
        message = (
            "nothing to revoke is named. Give --key, --of-repository, --run, --since or --until; "
            "a record must match all of them."
        )
        raise ConfigError(message)
    ends_now = not (options.key or options.run or options.until)
    if ends_now:
        revocation = msgspec.structs.replace(revocation, until=int(time.time()))
    if revocation.until and revocation.since > revocation.until:
        limit = "now" if ends_now else "--until"
        raise ConfigError(f"no record can match: --since is later than {limit}.")
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        revocations, unread = admin.of_each_group(
            settings.overrides.get("cache.zone"),
            lambda group: revoke_group(admin, group, revocation),
        )
    if not revocations and not unread:
        message = f"nothing to revoke: no tuning results are in {admin.location}"
        raise ConfigError(f"{message}. Name the cache and zone that have the records.")
    compactions = tuple(compaction for compaction, _ in revocations)
    failures = (problem for _, problem in revocations if problem)
    summary = _hidden_text(compactions, _UNTIL_NOW if ends_now else "")
    return show_compactions(settings, admin.location, compactions, (*unread, *failures), (summary,))


_UNTIL_NOW = " measured until now; --until hides later ones, too"


def _hidden_text(compactions: tuple[Compaction, ...], limit: str) -> str:
    count = sum(compaction.hidden for compaction in compactions)
    if count:
        return f"hidden: {plural(count, 'record')}{limit}"
    if any(compaction.status == "compacted" for compaction in compactions):
        return f"no record matches; any that comes later will be hidden{limit and ', if'}{limit}"
    return "nothing new was revoked"


def revoke_group(admin: CacheAdmin, group: Group, revocation: Revocation) -> tuple[Compaction, str]:
    """Returns the compaction, and the reason why the records still count, '' if they are revoked. A
    compaction that lost a race to another one has done nothing."""
    tries = 0
    while True:
        tries += 1
        compaction = admin.compactor(group).run(revoke=[revocation])
        current = group_state.current_head(admin.store, group, admin.keys)
        if current.tag is None or (current.head and revocation in current.head.revoked):
            return compaction, ""
        if compaction.status != "moved" or tries == _MOST_TRIES:
            reason = current.problem or "HEAD does not move. Run it again, or tunegate cache probe"
            return compaction, f"{group.zone}: nothing was revoked, {reason}"


# `tunegate cache pin`: builds use the cache as it is now, until the pin is moved.


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    pins: tuple[Pin, ...]


def pin(options: cache.PinOptions) -> int:
    """Writes tunegate.lock, to be committed; `remove` deletes it."""
    settings = options.settings
    admin = open_cache_admin(settings)
    if options.remove:
        (admin.root / PINS_FILE).unlink(missing_ok=True)
        if settings.as_json:
            write_json(Pinned(pins=()))
        else:
            show_lines([f"{PINS_FILE} is gone: builds read the cache as it is"])
        return PASS
    with answering(admin.config):
        pins = tuple(_pins(admin))
    if not pins:
        zones = ", ".join(admin.zones)
        message = (
            f"nothing to pin in zone {zones} of {admin.location}. "
            "Run tunegate cache compact first, and before it, if the zone is empty, tunegate warm."
        )
        raise ConfigError(message)
    path = write_pins(admin.root, pins)
    if settings.as_json:
        write_json(Pinned(pins=pins))
    else:
        show_table(
            str(path),
            ("zone", "target", "version", "index"),
            ((pin.zone, pin.target, pin.version, pin.index[:16]) for pin in pins),
        )
    return PASS


def _pins(admin: CacheAdmin) -> list[Pin]:
    pins = []
    for zone in admin.zones:
        for group in admin.groups(zone):
            _, current = group_state.state(admin.store, group, admin.keys)
            problem = current.problem
            if current.head is not None:
                version, index = current.head.version, current.head.snapshot.index
                pins.append(Pin(zone=zone, target=group.target, version=version, index=index))
                if lost := snapshot_problem(admin.store, group, index):
                    problem = f"its snapshot cannot be used, {lost}"
            if problem:
                advice = "" if current.is_later else ". Run tunegate cache fsck --repair"
                raise EnvironmentUnfitError(f"{group.head}: {problem}{advice}.")
    return pins
