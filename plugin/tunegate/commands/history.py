"""`tunegate history`: what runs have said, as a page."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.history import HistoryEntry
from tunegate.cache_place import answering, open_place
from tunegate.commands.standard_output import write_json, write_line
from tunegate.edges.history_log import read_history
from tunegate.errors import PASS, OutputError
from tunegate.render.history import render
from tunegate.settings import Settings
from tunegate.toolbox import prepared_out


class History(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    zone: str
    entries: tuple[HistoryEntry, ...]


def run(settings: Settings, *, runs: int) -> int:
    """Writes history.html of the latest `runs` runs of the configured zone."""
    place = open_place(settings)
    with answering(place.config):
        entries = read_history(place.store, place.config.zone, runs)
    if settings.as_json:
        write_json(History(zone=place.config.zone, entries=tuple(entries)))
        return PASS
    if not entries:
        write_line(
            f"{place.config.url}: no run has written to zone {place.config.zone} yet: tunegate run does, with cache.mode rw"
        )
        return PASS
    path = prepared_out(settings) / "history.html"
    try:
        path.write_text(render(entries, place.config.url), encoding="utf-8")
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}). Choose another with --out."
        raise OutputError(message) from error
    write_line(f"{len(entries)} lines of history: {path}")
    return PASS
