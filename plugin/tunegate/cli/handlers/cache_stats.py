"""`tunegate cache stats`: the cache's contents by zone and target, and its use by the latest
runs."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from tunegate.artifacts.history import CostSum, HistoryEntry
from tunegate.cli.commands.cache import CacheOptions
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.errors import PASS, UNFIT
from tunegate.report.escape import visible
from tunegate.report.history import cost_sum
from tunegate.report.units import duration, money, share
from tunegate.system.cache.history_log import read_history
from tunegate.wording import plural
from tunegate_cache.maintenance.summary import GroupSummary

_RUNS = 500
_DIGITS, _LONGEST = 8, 60
_COLUMNS = (
    "target: what is compiled for; one device has several where settings differ",
    "version: of the last compaction, 0 before the first",
    "segments: files of records that wait for cache compact; archived: files in archives",
)


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """`targets` names the targets of the contents; `used` is what the latest runs that wrote to the
    zone got from the cache."""

    schema: int = 1
    location: str
    contents: tuple[GroupSummary, ...]
    unread: tuple[str, ...] = ()
    targets: dict[str, str]
    used: CostSum


def run(options: CacheOptions) -> int:
    """Prints the statistics of the configured cache, or without a configuration of the default
    one."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        contents, unread = admin.summaries()
        entries = read_history(admin.store, admin.config.zone, _RUNS, int(time.time())).entries
    statistics = Statistics(
        location=admin.location,
        contents=contents,
        unread=unread,
        targets=target_names(contents, entries),
        used=cost_sum("", entries),
    )
    if settings.as_json:
        write_json(statistics)
    else:
        _show(statistics, admin.config.zone)
    return UNFIT if unread else PASS


def target_names(
    contents: Sequence[GroupSummary], entries: Sequence[HistoryEntry]
) -> dict[str, str]:
    """Returns a name for each target: the one that runs of the zone used, with the device, or the
    devices that measured its records. Equal names get the beginning of their keys."""
    names_by_key: dict[str, list[str]] = {}
    for entry in entries:
        own_names = names_by_key.setdefault(entry.target_key, [])
        if entry.target_key and entry.target not in own_names:
            own_names.append(entry.target)
    names = {row.target: _name(row, names_by_key) for row in contents}
    name_counts = Counter(names.values())
    devices = {row.target: row.devices[:2] for row in contents}
    device_counts = Counter(devices.values())
    ambiguous = {target for target, each in devices.items() if each and device_counts[each] > 1}
    return {
        target: name
        if name and name_counts[name] == 1 and target not in ambiguous
        else f"{name} {target[:_DIGITS]}".strip()
        for target, name in names.items()
    }


def _name(row: GroupSummary, names_by_key: Mapping[str, Sequence[str]]) -> str:
    """Returns a name for a row, with control characters visible: anybody who writes to the zone may
    have chosen it."""
    parts = (", ".join(names_by_key.get(row.target, ())), " / ".join(row.devices[:2]))
    return visible(": ".join(filter(None, parts)), _LONGEST)


def _show(statistics: Statistics, zone: str) -> None:
    show_table(
        statistics.location,
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
                statistics.targets[row.target],
                row.version,
                row.segments,
                row.archived,
                row.records,
                row.workloads,
                row.failures,
                row.size_bytes,
            )
            for row in statistics.contents
        ),
    )
    columns = _COLUMNS if statistics.contents else ()
    show_lines([*columns, *statistics.unread, _use_line(statistics.used, zone)])


def _use_line(spending: CostSum, zone: str) -> str:
    cost = spending.cost
    if not cost.tasks:
        return f"no run that wrote to zone {zone} has looked anything up yet"
    money_too = "" if cost.saved_usd is None else f" ({money(cost.saved_usd)})"
    return (
        f"the latest {plural(spending.runs, 'run')} that wrote to zone {zone}: hit rate "
        f"{share(cost.hits / cost.tasks)} of {plural(round(cost.tasks), 'look-up')}, "
        f"{duration(cost.saved_seconds)}{money_too} of tuning saved"
    )
