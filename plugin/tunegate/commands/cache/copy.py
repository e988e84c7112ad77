"""`tunegate cache pull` and `push`: the cache in a directory, for places without a network."""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.cache.pull import PullOptions
from tunegate.cli.commands.cache.push import PushOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines
from tunegate.edges.cache.shared_cache import undelivered_store
from tunegate.errors import PASS, UNFIT, ConfigError
from tunegate.plurals import plural
from tunegate.settings import Settings
from tunegate_cache.maintenance.copying import Copied, pull, push
from tunegate_cache.stores.files import FileStore


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    source: str
    destination: str
    copied: Copied


def run_pull(options: PullOptions) -> int:
    """Copies everything that the run would read into a store of its own: `cache.url` may name the
    directory."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        copied = Copied()
        for zone in dict.fromkeys((admin.config.zone, *admin.config.read_zones)):
            for group in admin.groups(zone):
                copied = copied.plus(
                    pull(admin.store, FileStore(options.directory), group, admin.keys)
                )
    return _finish(settings, admin.config.url, str(options.directory), copied)


def run_push(options: PushOptions) -> int:
    """Pushes the records of a directory store, or without a directory those that earlier runs on
    this machine could not deliver."""
    settings, directory = options.settings, options.directory
    if directory is not None and not directory.is_dir():
        raise ConfigError(f"{directory}: no such directory. Name one that tunegate wrote.")
    admin = open_cache_admin(settings)
    waiting = undelivered_store(admin.config, root=admin.root)
    source = waiting if directory is None else FileStore(directory)
    with answering(admin.config):
        copied = push(
            source,
            admin.store,
            from_zone=admin.config.zone,
            zone=admin.config.zone,
            signer=admin.signer,
        )
    if directory is None and not copied.problems:
        for name in source.names(f"ms1/z/{admin.config.zone}/"):
            source.delete(name)
    return _finish(settings, str(directory or "this machine"), admin.config.url, copied)


def _finish(settings: Settings, source: str, destination: str, copied: Copied) -> int:
    if settings.as_json:
        write_json(Copy(source=source, destination=destination, copied=copied))
    else:
        what = (
            f"{plural(copied.objects, 'object')}, {plural(copied.records, 'record')}, "
            f"{plural(copied.size_bytes, 'byte')}"
        )
        show_lines([f"{what}: {source} to {destination}", *copied.problems])
    return UNFIT if copied.problems else PASS
