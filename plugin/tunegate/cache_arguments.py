"""The options of `tunegate cache ...`, beside those that every command has."""

from __future__ import annotations

import argparse
import calendar
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tunegate_cache.format.revocation import Revocation


class CacheOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache command does not take has its default."""

    task: str = ""
    directory: Path | None = None
    repair: bool = False
    dry_run: bool = False
    remove: bool = False
    grace_hours: float = 24.0
    from_zone: str = ""
    revocation: Revocation = Revocation()


Options = argparse.ArgumentParser
ACTIONS: dict[str, str] = {
    "stats": "count what the cache holds",
    "why-miss": "say why a task of the last plan was not found",
    "doctor": "check the cache, and say what to do next",
    "probe": "test which promises the store keeps",
    "fsck": "read everything and say what is broken",
    "gc": "delete what the last compaction holds in another place",
    "compact": "gather segments so that look-ups need few requests",
    "revoke": "believe some records no longer",
    "promote": "take over a zone's records, after measuring them again",
    "pin": "write tunegate.lock: build with the cache as it is now",
    "export": "write a stock MetaSchedule database for the models at HEAD",
    "import": "take over what a stock MetaSchedule database knows, after measuring it again",
    "pull": "copy what a run reads into a directory",
    "push": "bring what a directory, or this machine, holds into the cache",
}


def add_cache_options(action: str, options: Options) -> None:
    """The options of one action."""
    adding = _ADDING.get(action)
    if adding is not None:
        adding(options)


def cache_options(given: dict[str, Any]) -> CacheOptions:
    """Take the options out of what argparse found."""
    rule = {name: given.pop(f"revoke_{name}", None) for name in Revocation.__struct_fields__}
    names = [name for name in CacheOptions.__struct_fields__ if name in given]
    return CacheOptions(
        revocation=Revocation(**{name: value for name, value in rule.items() if value}),
        **{name: given.pop(name) for name in names},
    )


def _why_miss(options: Options) -> None:
    options.add_argument("task", metavar="TASK", help="a layer's name, or a workload digest")


def _fsck(options: Options) -> None:
    options.add_argument("--repair", action="store_true", help="mend what can be mended")


def _gc(options: Options) -> None:
    options.add_argument("--dry-run", action="store_true", help="only count")
    options.add_argument(
        "--grace-hours",
        type=_hours,
        metavar="N",
        default=24.0,
        help="how long an object must have been unreferenced; default: 24",
    )


def _revoke(options: Options) -> None:
    options.add_argument("--key", dest="revoke_key", metavar="ID", help="signed by this key")
    options.add_argument(
        "--of-repository", dest="revoke_repository", metavar="NAME", help="from this repository"
    )
    options.add_argument("--run", dest="revoke_run", metavar="ID", help="from this CI run")
    options.add_argument(
        "--since", dest="revoke_since", type=_date, metavar="DATE", help="measured from then on"
    )
    options.add_argument(
        "--until", dest="revoke_until", type=_date, metavar="DATE", help="measured until then"
    )


def _promote(options: Options) -> None:
    options.add_argument(
        "--from-zone", required=True, metavar="NAME", help="such as pr/<owner>/<repository>/7"
    )


def _pin(options: Options) -> None:
    options.add_argument("--remove", action="store_true", help="delete tunegate.lock")


def _into(options: Options) -> None:
    options.add_argument("directory", type=Path, metavar="DIR", help="where it goes")


def _from(options: Options) -> None:
    options.add_argument("directory", type=Path, metavar="DIR", help="of the database")


def _push(options: Options) -> None:
    options.add_argument(
        "directory",
        type=Path,
        metavar="DIR",
        nargs="?",
        help="a directory store; default: what this machine could not deliver",
    )


_ADDING: dict[str, Callable[[Options], None]] = {
    "why-miss": _why_miss,
    "fsck": _fsck,
    "gc": _gc,
    "revoke": _revoke,
    "promote": _promote,
    "pin": _pin,
    "export": _into,
    "import": _from,
    "pull": _into,
    "push": _push,
}


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = -1.0
    if not 0 <= hours < 1e6:  # noqa: PLR2004 -- a century
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of hours')
    return hours


def _date(text: str) -> int:
    """Seconds since 1970 of a day or a minute, in UTC."""
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M"):
        try:
            parsed = time.strptime(text, form)
        except ValueError:
            continue
        return calendar.timegm(parsed)
    raise argparse.ArgumentTypeError(
        f'"{text}" is not a date such as 2026-11-21 or 2026-11-21T08:30'
    )
