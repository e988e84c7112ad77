"""`tunegate cache pull` and `push`: the cache in a directory, for places without a network."""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import answering, open_place
from tunegate.cli.commands.cache.pull import PullOptions
from tunegate.cli.commands.cache.push import PushOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines
from tunegate.edges.cache.shared_cache import undelivered_store
from tunegate.errors import PASS, UNFIT, ConfigError
from tunegate.settings import Settings
from tunegate_cache.maintenance.copying import Copied, pull, push
from tunegate_cache.stores.files import FileStore


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    source: str
    destination: str
    copied: Copied


def run_pull(options: PullOptions) -> int:
    """Everything the run would read, as a store of its own: `cache.url` may name the directory."""
    settings = options.settings
    place = open_place(settings)
    with answering(place.config):
        copied = Copied()
        for zone in dict.fromkeys((place.config.zone, *place.config.read_zones)):
            for group in place.groups(zone):
                copied = copied.plus(
                    pull(place.store, FileStore(options.directory), group, place.keys)
                )
    return _finish(settings, place.config.url, str(options.directory), copied)


def run_push(options: PushOptions) -> int:
    """What a directory store holds of the configured zone; without a directory, what earlier runs
    on this machine could not deliver."""
    settings, directory = options.settings, options.directory
    if directory is not None and not directory.is_dir():
        raise ConfigError(f"{directory}: no such directory. Name one that tunegate wrote.")
    place = open_place(settings)
    waiting = undelivered_store(place.config, root=place.root)
    source = waiting if directory is None else FileStore(directory)
    with answering(place.config):
        copied = push(
            source,
            place.store,
            from_zone=place.config.zone,
            zone=place.config.zone,
            signer=place.signer,
        )
    if directory is None and not copied.problems:
        for name in source.names(f"ms1/z/{place.config.zone}/"):
            source.delete(name)
    return _finish(settings, str(directory or "this machine"), place.config.url, copied)


def _finish(settings: Settings, source: str, destination: str, copied: Copied) -> int:
    if settings.as_json:
        write_json(Copy(source=source, destination=destination, copied=copied))
    else:
        what = f"{copied.objects} objects, {copied.records} records, {copied.size_bytes} bytes"
        show_lines([f"{what}: {source} to {destination}", *copied.problems])
    return UNFIT if copied.problems else PASS
