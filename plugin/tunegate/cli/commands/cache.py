"""Declares the commands of `tunegate cache`."""

from pathlib import Path
from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument, Option, date, end_of_date, hours
from tunegate.cli.shared_options import CacheAddress, Options


class CacheOptions(Options, frozen=True, kw_only=True):
    """Options of every command here: the cache to work on."""

    cache: CacheAddress = CacheAddress()


STATS = Command(
    name="cache stats",
    summary="count what the cache holds",
    options=CacheOptions,
    handler="tunegate.cli.handlers.cache_stats:run",
    examples=(
        "tunegate cache stats",
        "tunegate cache stats --json",
    ),
)


# Declares `tunegate cache why-miss`.


class WhyMissOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache why-miss`: the task that was not found."""

    task: Annotated[str, Argument("a layer's name, MODEL:NAME, or a workload digest", "TASK")]


WHY_MISS = Command(
    name="cache why-miss",
    summary="say why a task of the last plan was not found",
    options=WhyMissOptions,
    handler="tunegate.cli.handlers.cache_why_miss:run",
    examples=("tunegate cache why-miss layer1.0.conv1",),
)


# Declares `tunegate cache doctor`.

DOCTOR = Command(
    name="cache doctor",
    summary="check the cache, and say what to do next",
    options=CacheOptions,
    handler="tunegate.cli.handlers.cache_doctor:run_doctor",
    examples=("tunegate cache doctor",),
)


# Declares `tunegate cache probe`.

PROBE = Command(
    name="cache probe",
    summary="test which promises the store keeps",
    options=CacheOptions,
    handler="tunegate.cli.handlers.cache_doctor:run_probe",
    examples=("tunegate cache probe --cache-url s3://my-bucket/tuning",),
)


# Declares `tunegate cache fsck`.


class FsckOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache fsck`."""

    repair: Annotated[bool, Option("repair what can be repaired")] = False


FSCK = Command(
    name="cache fsck",
    summary="read everything and say what is broken",
    options=FsckOptions,
    handler="tunegate.cli.handlers.cache_upkeep:check",
    examples=(
        "tunegate cache fsck",
        "tunegate cache fsck --repair",
    ),
)


# Declares `tunegate cache gc`.


class GcOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache gc`."""

    dry_run: Annotated[bool, Option("only count")] = False
    grace_hours: Annotated[
        float, Option("how long an object must have been unreferenced", "N", hours)
    ] = 24.0


GC = Command(
    name="cache gc",
    summary="delete segments and snapshots that a compaction replaced",
    options=GcOptions,
    handler="tunegate.cli.handlers.cache_upkeep:collect_garbage",
    examples=(
        "tunegate cache gc --dry-run",
        "tunegate cache gc --zone pr/acme/models/7 --grace-hours 48",
    ),
)


# Declares `tunegate cache compact`.

COMPACT = Command(
    name="cache compact",
    summary="gather segments so that look-ups need few requests",
    options=CacheOptions,
    handler="tunegate.cli.handlers.cache_upkeep:compact",
    examples=("tunegate cache compact --zone main",),
)


# Declares `tunegate cache revoke`.


class RevokeOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache revoke`: which records; all given options must match."""

    key: Annotated[str, Option("records signed by this key", "ID")] = ""
    of_repository: Annotated[str, Option("records from this repository", "NAME")] = ""
    run: Annotated[str, Option("records from this CI run", "ID")] = ""
    since: Annotated[int | None, Option("records measured from then on", "DATE", date)] = None
    until: Annotated[
        int | None,
        Option(
            "up to the end of that date; without a key or a run, until now", "DATE", end_of_date
        ),
    ] = None


REVOKE = Command(
    name="cache revoke",
    summary="hide records that must not be used",
    options=RevokeOptions,
    handler="tunegate.cli.handlers.cache_upkeep:revoke",
    examples=(
        "tunegate cache revoke --key 3f9a1c0b5d7e2468",
        "tunegate cache revoke --of-repository acme/models --since 2026-11-21T08:30",
    ),
)


# Declares `tunegate cache promote`.


class PromoteOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache promote`."""

    from_zone: Annotated[str, Option("such as pr/<owner>/<repository>/7", "NAME")]


PROMOTE = Command(
    name="cache promote",
    summary="take over a zone's records, after measuring them again",
    options=PromoteOptions,
    handler="tunegate.cli.handlers.cache_copy:promote",
    examples=("tunegate cache promote --from-zone pr/acme/models/7",),
)


# Declares `tunegate cache pin`.


class PinOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache pin`."""

    remove: Annotated[bool, Option("delete tunegate.lock")] = False


PIN = Command(
    name="cache pin",
    summary="write tunegate.lock: build with the cache as it is now",
    options=PinOptions,
    handler="tunegate.cli.handlers.cache_upkeep:pin",
    examples=(
        "tunegate cache pin",
        "tunegate cache pin --remove",
    ),
)


# Declares `tunegate cache pull`.


class PullOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache pull`: where the copy goes."""

    directory: Annotated[Path, Argument("where it goes", "DIR", Path)]


PULL = Command(
    name="cache pull",
    summary="copy what a run reads into a directory",
    options=PullOptions,
    handler="tunegate.cli.handlers.cache_copy:run_pull",
    examples=("tunegate cache pull offline-cache",),
)


# Declares `tunegate cache push`.


class PushOptions(CacheOptions, frozen=True, kw_only=True):
    """Options of `cache push`."""

    directory: Annotated[
        Path | None,
        Argument("a directory store; default: what this machine could not deliver", "DIR", Path),
    ] = None


PUSH = Command(
    name="cache push",
    summary="upload what a directory, or this machine, has for the cache",
    options=PushOptions,
    handler="tunegate.cli.handlers.cache_copy:run_push",
    examples=(
        "tunegate cache push",
        "tunegate cache push offline-cache",
    ),
)
