"""`tunegate cache pull`, `push` and `promote`: records on their way between places. The first two
copy them as they are; a pull request's are measured again here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.commands import cache
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_revalidation
from tunegate.errors import PASS, UNFIT, ConfigError, EnvironmentUnfitError
from tunegate.models.export_models import export_models
from tunegate.project import Project, open_project
from tunegate.settings import Settings
from tunegate.system.cache.shared_cache import SharedCache, require_signing, undelivered_store
from tunegate.system.output.directory import opened_output
from tunegate.tools import Tools
from tunegate.tune.revalidation import Challenge, Revalidated, challenges, revalidate
from tunegate.wiring import opened_tools
from tunegate.wording import plural
from tunegate_cache.format.names import zone_problem
from tunegate_cache.format.records import Miss, TuningRecord
from tunegate_cache.maintenance.copying import Copied, pull, push
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.store import StoreUnavailableError


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    source: str
    destination: str
    copied: Copied


def run_pull(options: cache.PullOptions) -> int:
    """Copies everything that a run would read into a directory store, which `cache.url` may
    name."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        total = Copied()
        for zone in admin.zones:
            for group in admin.groups(zone):
                destination = _Destination(options.directory)
                copied = pull(admin.store, destination, group, admin.keys, admin.signer)
                total = total.plus(copied)
    return _finish(settings, admin.location, str(options.directory), total)


class _Source(FileStore):
    """The directory of a copy. Its trouble is not the cache's; `push` names what it cannot read."""

    def names(self, prefix: str) -> Sequence[str]:
        with _named_in_trouble():
            return super().names(prefix)


class _Destination(_Source):
    def read(self, name: str) -> bytes:
        with _named_in_trouble():
            return super().read(name)

    def write(self, name: str, body: bytes) -> None:
        with _named_in_trouble():
            super().write(name, body)

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        with _named_in_trouble():
            super().move_pointer(name, body, expected)


@contextmanager
def _named_in_trouble() -> Iterator[None]:
    try:
        yield
    except StoreUnavailableError as error:
        message = f"the copy cannot be used ({error}). Make room, or name another directory."
        raise EnvironmentUnfitError(message) from error


def run_push(options: cache.PushOptions) -> int:
    """Pushes the records of a directory store, or without one those that earlier runs on this
    machine could not deliver."""
    settings, directory = options.settings, options.directory
    if directory is not None and not directory.is_dir():
        raise ConfigError(f"{directory}: no such directory. Name one that tunegate wrote.")
    admin = open_cache_admin(settings)
    require_signing(admin.config)
    waiting = undelivered_store(admin.config, root=admin.root)
    source = waiting if directory is None else _Source(directory)
    with answering(admin.config):
        total = push(
            source,
            admin.store,
            admin.config.zone,
            keys=admin.keys,
            signer=admin.signer,
            # What was delivered need not wait any longer. A directory is the user's, and stays.
            are_moved=directory is None,
        )
    return _finish(settings, str(directory or "this machine"), admin.location, total)


def _finish(settings: Settings, source: str, destination: str, total: Copied) -> int:
    if settings.as_json:
        write_json(Copy(source=source, destination=destination, copied=total))
    else:
        counts = [
            plural(total.objects, "object"),
            plural(total.records, "record"),
            plural(total.size_bytes, "byte"),
        ]
        behind = (total.revoked, "revoked record"), (total.untrusted, "untrusted segment")
        counts += [f"without {plural(count, what)}" for count, what in behind if count]
        show_lines([f"{', '.join(counts)}: {source} to {destination}", *total.problems])
    return UNFIT if total.problems else PASS


# `tunegate cache promote`: a pull request's records for everybody, after measuring them again.


class Promotions(msgspec.Struct, frozen=True, kw_only=True):
    """`published` is False if the records could not be delivered; they wait for the next run.
    `unread` says why records of the other zone may be missing."""

    schema: int = 1
    from_zone: str
    zone: str
    published: bool
    tasks: tuple[Revalidated, ...]
    unread: tuple[str, ...] = ()


def promote(options: cache.PromoteOptions) -> int:
    """Measures a zone's records again for the tasks of the models at HEAD, within the budget.
    Raises ConfigError."""
    settings = options.settings
    problem = zone_problem(options.from_zone)
    project = open_project(settings)
    if problem is not None:
        raise ConfigError(f"--from-zone: {problem}.")
    if options.from_zone == project.config.cache.zone:
        raise ConfigError(
            f"--from-zone: {options.from_zone} is the zone to promote to. Name another."
        )
    changes = project.all_models()
    require_signing(project.config.cache)
    with (
        opened_output(settings.out, "cache promote") as out,
        opened_tools(settings, project.checkout(), out) as tools,
    ):
        standing, unread = _challenges_of_zone(project, changes, tools, options.from_zone)
        files = export_models(changes, tools.source).files
        results, is_published = revalidate(
            standing,
            files,
            tools.tuner,
            project.config,
            context=tools.context,
            publish=lambda winners: tools.index.publish(
                [_mark_promoted(record, options.from_zone) for record in winners]
            ),
        )
    promotions = Promotions(
        from_zone=options.from_zone,
        zone=project.config.cache.zone,
        published=is_published,
        tasks=results,
        unread=unread,
    )
    if settings.as_json:
        write_json(promotions)
    else:
        if results or not unread:
            show_revalidation(f"{promotions.from_zone} to {promotions.zone}", promotions.tasks)
        show_lines(unread)
        if not is_published:
            show_lines([f"nothing is stored in {promotions.zone} yet: run tunegate cache doctor"])
    return PASS if is_published and not unread else UNFIT


def _challenges_of_zone(
    project: Project, changes: ChangeSet, tools: Tools, from_zone: str
) -> tuple[tuple[Challenge, ...], tuple[str, ...]]:
    # The other zone is read as if it were this run's own, by a cache that writes nothing.
    tasks = pipeline.extract_tasks(tools, changes).tasks
    keys = [(task.key, task.shape) for task in tasks]
    theirs = SharedCache(
        msgspec.structs.replace(
            project.config.cache, zone=from_zone, read_zones=(from_zone,), mode="ro"
        ),
        state=tools.source.workdir / "promotion",
        root=project.repository.root,
        device=tools.context.device.fingerprint(),
    )
    found = theirs.lookup(keys)
    reasons = {each.reason for each in found.values() if isinstance(each, Miss)}
    unread = theirs.use().notes if reasons & {"corrupt", "store-unavailable"} else ()
    return challenges(tasks, found, tools.index.lookup(keys)), unread


def _mark_promoted(record: TuningRecord, from_zone: str) -> TuningRecord:
    source = msgspec.structs.replace(record.source, ref=f"promoted from {from_zone}")
    return msgspec.structs.replace(record, source=source)
