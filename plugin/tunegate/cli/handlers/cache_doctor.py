"""`tunegate cache doctor` and `probe`: from an empty bucket to a working shared cache, step by
step."""

import secrets
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from tunegate.cli.commands.cache import CacheOptions
from tunegate.cli.handlers.cache_admin import CacheAdmin, answering, open_cache_admin
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines, show_table
from tunegate.errors import PASS, UNFIT
from tunegate.redaction import redact
from tunegate.system.cache.shared_cache import (
    VARIABLE,
    count_undelivered,
    open_shared_store,
    store_kind,
)
from tunegate.system.cache.snapshot_pins import PINS_FILE, SnapshotPins, read_pins
from tunegate.system.machine.health import HealthCheck
from tunegate.wording import plural
from tunegate_cache.format.names import OBJECT_ROOT, Group
from tunegate_cache.maintenance.summary import GroupSummary
from tunegate_cache.protocol import group_state
from tunegate_cache.protocol.snapshots import snapshot_problem
from tunegate_cache.stores.conformance import GuaranteeResult, probe
from tunegate_cache.stores.store import AccessDeniedError, StoreUnavailableError

_MANY_SEGMENTS = 50


class CacheDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The findings; `next_steps` are in the order to take them."""

    schema: int = 1
    location: str
    checks: tuple[HealthCheck, ...]
    next_steps: tuple[str, ...]


def run_doctor(options: CacheOptions) -> int:
    """Runs the checks. Returns 4 if the cache cannot be used as configured."""
    settings = options.settings
    admin = open_cache_admin(settings)
    checks, steps = _diagnosis(admin)
    if settings.as_json:
        diagnosis = CacheDiagnosis(
            location=admin.location, checks=tuple(checks), next_steps=tuple(steps)
        )
        write_json(diagnosis)
    else:
        rows = ((check.name, "ok" if check.ok else "no", check.detail) for check in checks)
        show_table(admin.location, ("check", "", "detail"), rows)
        show_lines(["", "Next:", *(f"  {n}. {step}" for n, step in enumerate(steps, 1))])
    return PASS if all(check.ok for check in checks) else UNFIT


def _diagnosis(admin: CacheAdmin) -> tuple[list[HealthCheck], list[str]]:
    config = admin.config
    try:
        summaries, unread = admin.summaries()
    except StoreUnavailableError as error:
        return [HealthCheck("reads", ok=False, detail=str(error))], list(_unreachable(admin, error))
    records = sum(row.records for row in summaries)
    detail = f"{plural(records, 'record')} in {plural(len(summaries), 'group')}"
    checks = [HealthCheck("reads", ok=True, detail=detail)]
    checks += [HealthCheck("group", ok=False, detail=line) for line in unread]
    checks.append(
        HealthCheck(
            "zones", ok=True, detail=f"writes {config.zone}, reads {', '.join(admin.zones)}"
        )
    )
    steps = ["let this user read what is left out, or delete it"] if unread else []
    if config.mode == "rw":
        checks += _writing(admin, steps)
    else:
        detail = f"mode is {config.mode}: runs write nothing"
        checks.append(HealthCheck("writes", ok=True, detail=detail))
    checks += _trust(admin, steps)
    checks += _local(admin, steps)
    steps += _upkeep(admin, summaries)
    return checks, steps or ["nothing: the cache is in use and in order"]


def _unreachable(admin: CacheAdmin, error: StoreUnavailableError) -> Iterator[str]:
    yield from error.advice or store_kind(admin.config, root=admin.root).advice
    yield "run tunegate cache doctor again"


def _writing(admin: CacheAdmin, steps: list[str]) -> Iterator[HealthCheck]:
    try:
        findings = probe(admin.store)
    except AccessDeniedError as error:
        yield _write_check_of_denied(admin, error, steps)
        return
    except StoreUnavailableError as error:
        yield HealthCheck("writes", ok=False, detail=str(error))
        steps.extend(_unreachable(admin, error))
        return
    for finding in findings:
        yield HealthCheck(finding.name, ok=finding.ok or not finding.needed, detail=finding.detail)
    steps.extend(f.detail for f in findings if not f.ok and f.detail)


def _write_check_of_denied(
    admin: CacheAdmin, error: AccessDeniedError, steps: list[str]
) -> HealthCheck:
    """Returns the check of a store that refuses writes, for lack of encryption or of rights. A
    bucket's policy reports both alike, so an encrypted write is tried."""
    encryption = _required_encryption(admin)
    if encryption is not None:
        steps.append(f"set cache.sse: {encryption}, and cache.sse-kms-key for a key of your own")
        return HealthCheck("writes", ok=False, detail=f"only what is encrypted ({error})")
    steps.extend(error.advice)
    steps.append(
        "set cache.mode: ro, or give this user a role that may write "
        f"ms1/z/{admin.config.zone}/*/seg/* (docs/aws)"
    )
    return HealthCheck("writes", ok=True, detail=f"not with these credentials ({error})")


def _required_encryption(admin: CacheAdmin) -> str | None:
    """Returns the encryption with which the store accepts a write, if none is configured."""
    if admin.config.sse is not None:
        return None
    name = f"{OBJECT_ROOT}/probe/{secrets.token_hex(8)}/encrypted"
    for encryption in store_kind(admin.config, root=admin.root).encryptions:
        config = msgspec.structs.replace(admin.config, sse=encryption)
        store = open_shared_store(config, root=admin.root)
        try:
            store.write(name, b"")
        except StoreUnavailableError:
            continue
        with suppress(StoreUnavailableError):
            store.delete(name)
        return encryption
    return None


def _trust(admin: CacheAdmin, steps: list[str]) -> Iterator[HealthCheck]:
    zone = admin.config.zone
    must_sign = admin.keys.is_required(zone)
    if admin.signer is not None and admin.keys.is_signer(zone, admin.signer):
        detail = f"signs with {admin.signer.key}: {admin.signer.public}"
        yield HealthCheck("signing key", ok=True, detail=detail)
        if not must_sign:
            steps.append(
                f"trust the key: cache.trusted-keys: {{{zone}: [{admin.signer.public}]}}. Unsigned "
                "records count no longer then: run tunegate cache compact, gc and pull DIR before, "
                "push DIR and compact after"
            )
        return
    if must_sign and admin.config.mode == "rw":
        detail = f"zone {zone} wants signatures and {VARIABLE} is no key of it"
        yield HealthCheck("signing key", ok=False, detail=detail)
        steps.append(f"set {VARIABLE} to the PEM of a trusted key, or cache.mode: ro")
        return
    count = "signed ones" if must_sign else "records of anyone who may write to the store"
    yield HealthCheck("signing key", ok=True, detail=f"none: {count} count")


def _local(admin: CacheAdmin, steps: list[str]) -> Iterator[HealthCheck]:
    waiting = count_undelivered(admin.config, root=admin.root)
    if waiting:
        detail = f"not delivered yet: {plural(waiting, 'segment')}"
        yield HealthCheck("waiting here", ok=True, detail=detail)
        steps.append("run tunegate cache push, which delivers them")
    pins = read_pins(admin.root)
    if pins:
        lost = [*_lost_pins(admin, pins)]
        later = [*_later_heads(admin, pins)]
        news = f", {len(later)} with a later one: tunegate cache pin takes it" if later else ""
        detail = "; ".join((f"{PINS_FILE} pins {plural(len(pins), 'snapshot')}{news}", *lost))
        yield HealthCheck("pin", ok=not lost, detail=detail)
        if lost:
            steps.append(f"pin what is there now: run tunegate cache pin, and commit {PINS_FILE}")


def _lost_pins(admin: CacheAdmin, pins: SnapshotPins) -> Iterator[str]:
    for group, index in pins.items():
        with suppress(StoreUnavailableError):  # busy, so nobody knows
            if problem := snapshot_problem(admin.store, group, index):
                yield f"{group.content('idx', index)}: {problem}"


def _later_heads(admin: CacheAdmin, pins: SnapshotPins) -> Iterator[Group]:
    for group, index in pins.items():
        with suppress(StoreUnavailableError):
            head = group_state.current_head(admin.store, group, admin.keys).head
            if head is not None and head.snapshot.index != index:
                yield group


def _upkeep(admin: CacheAdmin, groups: tuple[GroupSummary, ...]) -> Iterator[str]:
    if not groups and not admin.is_compiled:
        yield "nothing: no target compiles anything, so only the history of runs is kept here"
        return
    if not groups:
        yield f"the cache is empty: have tunegate.yaml say {_setting(admin)}, and commit it"
        yield "run tunegate warm on the default branch: what it learns is what pull requests find"
        yield "run it again: every task is now an exact hit, and nothing is tuned"
        yield "schedule tunegate cache compact, then tunegate cache gc, once a day"
        return
    if any(row.corrupt or row.refused for row in groups):
        yield "some objects cannot be used: tunegate cache fsck says which"
    if any(row.segments > _MANY_SEGMENTS for row in groups):
        yield "many segments stand alone: run tunegate cache compact, best on a schedule"


def _setting(admin: CacheAdmin) -> str:
    config = admin.config
    parts = {
        "url": config.url,
        "endpoint-url": config.endpoint_url,
        "region": config.region,
        "sse": config.sse,
    }
    text = ", ".join(f"{key}: {value}" for key, value in parts.items() if value)
    return redact(f"cache: {{{text}}}", ())


# `tunegate cache probe`: does the store keep its promises?


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    location: str
    findings: tuple[GuaranteeResult, ...]


def run_probe(options: CacheOptions) -> int:
    """Returns 4 if the cache cannot work with this store at all."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        findings = probe(admin.store)
    if settings.as_json:
        write_json(Probe(location=admin.location, findings=findings))
    else:
        show_table(
            admin.location,
            ("the store", "", "needed", "detail"),
            (
                (f.name, "yes" if f.ok else "no", "yes" if f.needed else "", f.detail)
                for f in findings
            ),
        )
    return PASS if all(f.ok for f in findings if f.needed) else UNFIT
