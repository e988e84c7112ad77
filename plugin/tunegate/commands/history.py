"""`tunegate history`: what runs have said, as a page."""

from __future__ import annotations

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.history import HistoryEntry
from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.history import HistoryOptions
from tunegate.commands.standard_output import write_json, write_line
from tunegate.edges.cache.history_log import read_history
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS
from tunegate.render.history import render
from tunegate.render.units import plural


class History(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    zone: str
    entries: tuple[HistoryEntry, ...]
    refused: int


def run(options: HistoryOptions) -> int:
    """Writes history.html of the latest `runs` runs of the configured zone."""
    settings = options.settings
    place = open_cache_admin(settings)
    with answering(place.config):
        found = read_history(place.store, place.config.zone, options.runs)
    entries = found.entries
    if settings.as_json:
        write_json(History(zone=place.config.zone, entries=entries, refused=found.refused))
        return PASS
    if not entries:
        write_line(
            f"{place.config.url}: no run has written to zone {place.config.zone} yet: "
            "tunegate run does, with cache.mode rw"
        )
        return PASS
    path = settings.out / "history.html"
    with opened_output(settings.out, "history"):
        artifact_io.write_text(path, render(entries, place.config.url))
    write_line(f"{plural(len(entries), 'line')} of history: {path}{_left_out(found.refused)}")
    return PASS


def _left_out(refused: int) -> str:
    return f"; {plural(refused, 'line')} of another format left out" if refused else ""
