"""Waived slowdowns, read from the revisions that are compared."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import msgspec

from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.waivers import WAIVERS_FILE, Waiver
from tunegate.config import Config, GateConfig
from tunegate.edges.config import waiver_trailers, waivers_file
from tunegate.errors import ConfigError, RevisionError
from tunegate.policy.stray_waivers import stray_waivers
from tunegate.policy.waivers import Waivers, merged_waivers
from tunegate.ports import Repository, Trailer


def waivers_of(
    repository: Repository, changes: ChangeSet, config: Config, today: datetime.date
) -> Waivers:
    """Returns the waivers of a change that this configuration judges, with a note on each that
    matches nothing. Raises ConfigError like `read_waivers`."""
    found = read_waivers(repository, changes.revisions, config.gate, today)
    models = (*changes.unchanged, *(change.path for change in changes.models))
    strays = stray_waivers((*found.counting, *found.pending), config, models)
    return msgspec.structs.replace(found, notes=(*found.notes, *strays))


def read_waivers(
    repository: Repository, revisions: Revisions, gate: GateConfig, today: datetime.date
) -> Waivers:
    """`gate` is what judges: its `waivers-from` says whose file counts, its `waiver-trailers`
    whether the commits between base and head do. A commit's waiver goes before the file's.

    Raises ConfigError for waivers of the head that cannot be understood. Those of the base then
    waive nothing, which is told: who repairs them must not be blocked by them.
    """
    of_head = _filed(repository, revisions.head, today)
    found = Waivers(counting=of_head)
    if gate.waivers_from == "base" and revisions.judged_by is not None:
        of_base, broken = _filed_before(repository, revisions.judged_by, today)
        fork = revisions.forked_at
        if fork and _text(repository, fork) == _text(repository, revisions.head):
            of_head = of_base  # the change has not touched the file
        merged = merged_waivers(of_base, of_head, WAIVERS_FILE)
        found = msgspec.structs.replace(merged, notes=broken, has_unread=bool(broken))
    if revisions.base is None:
        return found
    key, do_count = waiver_trailers.WAIVER_TRAILER, gate.waiver_trailers
    trailers = repository.trailers(revisions.base, revisions.head, key, may_fetch=do_count)
    return _with_trailers(found, trailers, today, do_count=do_count)


def _with_trailers(
    found: Waivers, trailers: Sequence[Trailer], today: datetime.date, *, do_count: bool
) -> Waivers:
    """The waivers with those of trailers. Where trailers do not count,
    nobody has to write them well."""
    try:
        signed = waiver_trailers.parse_trailers(trailers, today)
    except ConfigError:
        if do_count:
            raise
        return found
    if not do_count:
        pending = (*found.pending, *signed)
        return msgspec.structs.replace(found, pending=pending, signed=signed)
    cells = {waiver.cell for waiver in signed}
    rest = (waiver for waiver in found.counting if waiver.cell not in cells)
    return msgspec.structs.replace(found, counting=(*signed, *rest), signed=signed)


def _filed_before(
    repository: Repository, revision: str, today: datetime.date
) -> tuple[tuple[Waiver, ...], tuple[str, ...]]:
    """Returns the waivers, and a note where they cannot be read."""
    try:
        return _filed(repository, revision, today), ()
    except ConfigError as error:
        return (), (f"nothing is waived: in {revision[:12]}, whose rules judge, {error}",)


def _filed(repository: Repository, revision: str, today: datetime.date) -> tuple[Waiver, ...]:
    return waivers_file.parse_waivers(_text(repository, revision), WAIVERS_FILE, today)


def _text(repository: Repository, revision: str) -> str:
    try:
        return repository.read(revision, WAIVERS_FILE).decode() if revision else ""
    except RevisionError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{WAIVERS_FILE}: not UTF-8 ({error}). Save it as text.") from error
