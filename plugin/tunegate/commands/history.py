"""`tunegate history`: earlier runs and their costs, as pages or as data."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.history import HistoryEntry
from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.history import HistoryFormat, HistoryOptions
from tunegate.commands.standard_output import write_json, write_line
from tunegate.edges.cache.history_log import ReadHistory, read_history
from tunegate.edges.output.directory import shared_output
from tunegate.errors import PASS
from tunegate.plurals import plural
from tunegate.render.history import costs_page, page
from tunegate.render.history.csv_lines import csv_lines
from tunegate.run_history.cost_sums import cost_sums


class History(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    zone: str
    entries: tuple[HistoryEntry, ...]
    refused: int


def run(options: HistoryOptions) -> int:
    """Writes the latest `runs` runs of the configured zone, also while a run is at work."""
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
            return {"history.csv": csv_lines(entries)}
        case "jsonl":
            lines = (msgspec.json.encode(entry).decode() for entry in entries)
            return {"history.jsonl": "".join(f"{line}\n" for line in lines)}
        case "html":
            return {
                "history.html": page.render(entries, location, found.refused),
                "costs.html": costs_page.render(cost_sums(entries), location, found.refused),
            }
