"""`tunegate cache pin`: build with the cache as it is now, until the pin is moved."""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import CacheAdmin, answering, open_place
from tunegate.cli.commands.cache.pin import PinOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines, show_table
from tunegate.edges.cache.snapshot_pins import PINS_FILE, Pin, write_pins
from tunegate.errors import PASS, ConfigError
from tunegate_cache.protocol import group_state


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    pins: tuple[Pin, ...]


def run(options: PinOptions) -> int:
    """Writes tunegate.lock, to be committed; `remove` deletes it."""
    settings = options.settings
    place = open_place(settings)
    if options.remove:
        (place.root / PINS_FILE).unlink(missing_ok=True)
        show_lines([f"{PINS_FILE} is gone: builds read the cache as it is"])
        return PASS
    with answering(place.config):
        pins = tuple(_pins(place))
    if not pins:
        zones = ", ".join(_zones(place))
        message = (
            f"nothing to pin in zone {zones} of "
            f"{place.config.url}. Run tunegate cache compact first."
        )
        raise ConfigError(message)
    path = write_pins(place.root, pins)
    if settings.as_json:
        write_json(Pinned(pins=pins))
    else:
        show_table(
            str(path),
            ("zone", "target", "version", "index"),
            ((pin.zone, pin.target, pin.version, pin.index[:16]) for pin in pins),
        )
    return PASS


def _zones(place: CacheAdmin) -> tuple[str, ...]:
    return tuple(dict.fromkeys((place.config.zone, *place.config.read_zones)))


def _pins(place: CacheAdmin) -> list[Pin]:
    found = []
    for zone in _zones(place):
        for group in place.groups(zone):
            head = group_state.current_head(place.store, group, place.keys).head
            if head is not None:
                found.append(
                    Pin(
                        zone=group.zone,
                        target=group.target,
                        version=head.version,
                        index=head.snapshot.index,
                    )
                )
    return found
