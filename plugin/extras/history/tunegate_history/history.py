"""`tunegate history`: earlier runs and their costs, as pages or as data."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.history import HistoryEntry
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.errors import PASS
from tunegate.report.escape import visible
from tunegate.system.cache.history_log import ReadHistory, read_history
from tunegate.system.output.directory import shared_output
from tunegate.wording import plural
from tunegate_history import costs_page
from tunegate_history import history_page as page
from tunegate_history.commands import HistoryFormat, HistoryOptions

_OFFERED_PERCENT = 5.0
"""Below it, chained changes of a noisy machine look alike."""
_MOST_OFFERS, _SHORT_ID, _LONGEST = 3, 12, 400


class History(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    zone: str
    entries: tuple[HistoryEntry, ...]
    refused: int


def run(options: HistoryOptions) -> int:
    """Writes the latest `runs` runs of the configured zone, even while a run is at work."""
    settings = options.settings
    place = open_cache_admin(settings)
    with answering(place.config):
        found = read_history(place.store, place.config.zone, options.runs, int(time.time()))
    if settings.as_json:
        write_json(History(zone=place.config.zone, entries=found.entries, refused=found.refused))
        return PASS
    if not found.entries:
        write_line(
            f"{place.location}: no run has written to zone {place.config.zone} yet: "
            f"tunegate run does, with cache.mode rw. {page.refused_words(found.refused)}".rstrip()
        )
        return PASS
    files = _files(found, place.location, options.format)
    out = shared_output(settings.out)
    for name, text in files.items():
        artifact_io.write_text(out / name, text)
    written = " ".join(str(settings.out / name) for name in files)
    lines = plural(len(found.entries), "line")
    write_line(f"{lines} of history: {written}. {page.refused_words(found.refused)}".rstrip(". "))
    for line in bisect_offers(found.entries):
        write_line(visible(line, _LONGEST))
    return PASS


def bisect_offers(entries: Sequence[HistoryEntry]) -> tuple[str, ...]:
    """Returns a line with the command that finds the commit, for each model that got slower on the
    default branch since its fastest run; the slowest first."""
    rows: dict[tuple[str, ...], list[tuple[float, HistoryEntry]]] = {}
    shown = sorted(entries, key=lambda each: (each.at, each.commit, each.model))
    for entry, ms in zip(shown, page.chained_ms(shown), strict=True):
        if ms is not None and not entry.is_aside and entry.change is None:
            key = (entry.repository, entry.model, entry.target, entry.device)
            rows.setdefault(key, []).append((ms, entry))
    slower = []
    for (repository, model, target, _), points in rows.items():
        (least, good), (last, bad) = min(points, key=lambda each: each[0]), points[-1]
        percent = 100 * (last / least - 1)
        if percent > _OFFERED_PERCENT and good.commit != bad.commit:
            ends = shlex.quote(f"{good.commit[:_SHORT_ID]}..{bad.commit[:_SHORT_ID]}")
            command = f"tunegate bisect {ends} --model {shlex.quote(model)}"
            place = f"{model} on {target}" + (f" in {repository}" if repository else "")
            told = f"{place} got {percent:.1f}% slower since its fastest run: {command}"
            slower.append((percent, told))
    return tuple(line for _, line in sorted(slower, reverse=True)[:_MOST_OFFERS])


def _files(history: ReadHistory, location: str, format_: HistoryFormat) -> Mapping[str, str]:
    entries = history.entries
    match format_:
        case "csv":
            return {"history.csv": page.csv_lines(entries)}
        case "jsonl":
            lines = (msgspec.json.encode(entry).decode() for entry in entries)
            return {"history.jsonl": "".join(f"{line}\n" for line in lines)}
        case "html":
            return {
                "history.html": page.render(entries, location, history.refused),
                "costs.html": costs_page.render(entries, location, history.refused),
            }
