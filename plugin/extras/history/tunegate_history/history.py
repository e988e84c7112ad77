"""`tunegate history`: earlier runs and their costs, as pages or as data."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate.artifacts import artifact_io
from tunegate.artifacts.history import HistoryEntry
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.errors import PASS
from tunegate.system.cache.history_log import ReadHistory, read_history
from tunegate.system.output.directory import shared_output
from tunegate.wording import plural
from tunegate_history import costs_page
from tunegate_history import history_page as page
from tunegate_history.commands import HistoryFormat, HistoryOptions


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
        found = read_history(place.store, place.config.zone, options.runs)
    if settings.as_json:
        write_json(History(zone=place.config.zone, entries=found.entries, refused=found.refused))
        return PASS
    if not found.entries:
        write_line(
            f"{place.config.url}: no run has written to zone {place.config.zone} yet: "
            f"tunegate run does, with cache.mode rw. {page.refused_words(found.refused)}".rstrip()
        )
        return PASS
    files = _files(found, place.config.url, options.format)
    out = shared_output(settings.out)
    for name, text in files.items():
        artifact_io.write_text(out / name, text)
    written = " ".join(str(settings.out / name) for name in files)
    lines = plural(len(found.entries), "line")
    write_line(f"{lines} of history: {written}. {page.refused_words(found.refused)}".rstrip(". "))
    return PASS


def _files(found: ReadHistory, location: str, wanted: HistoryFormat) -> Mapping[str, str]:
    entries = found.entries
    match wanted:
        case "csv":
            return {"history.csv": page.csv_lines(entries)}
        case "jsonl":
            lines = (msgspec.json.encode(entry).decode() for entry in entries)
            return {"history.jsonl": "".join(f"{line}\n" for line in lines)}
        case "html":
            return {
                "history.html": page.render(entries, location, found.refused),
                "costs.html": costs_page.render(entries, location, found.refused),
            }
