"""`tunegate cache pin`: build with the cache as it is now, until the pin is moved."""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import CacheAdmin, answering, open_cache_admin
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
    admin = open_cache_admin(settings)
    if options.remove:
        (admin.root / PINS_FILE).unlink(missing_ok=True)
        show_lines([f"{PINS_FILE} is gone: builds read the cache as it is"])
        return PASS
    with answering(admin.config):
        pins = tuple(_pins(admin))
    if not pins:
        zones = ", ".join(_zones(admin))
        message = (
            f"nothing to pin in zone {zones} of "
            f"{admin.config.url}. Run tunegate cache compact first."
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


def _zones(admin: CacheAdmin) -> tuple[str, ...]:
    return tuple(dict.fromkeys((admin.config.zone, *admin.config.read_zones)))


def _pins(admin: CacheAdmin) -> list[Pin]:
    found = []
    for zone in _zones(admin):
        for group in admin.groups(zone):
            head = group_state.current_head(admin.store, group, admin.keys).head
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
