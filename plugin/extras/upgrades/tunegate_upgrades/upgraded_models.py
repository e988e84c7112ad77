"""The models that run under a lock file's packages, as changes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from tunegate.artifacts.changes import ModelChange, ModelPath, ModelVersion, upgraded_name
from tunegate.config import AUTO, Config
from tunegate.review.model_settings import profiles_for, targets_for
from tunegate_upgrades.lock_files.lock import LockFile, LockFileError, PinnedPackage
from tunegate_upgrades.locked_runtimes import LockedRuntime
from tunegate_upgrades.upgraded_locks import UpgradedLock


def upgraded_models(
    config: Config,
    heads: Mapping[ModelPath, ModelVersion],
    locks: Sequence[UpgradedLock],
    runtimes: Sequence[LockedRuntime],
) -> Iterator[ModelChange]:
    """Yields each model of the head once per lock file and runtime that it pins. Raises
    LockFileError for a runtime that the head takes from elsewhere, or in any version."""
    for lock, runtime in product(locks, runtimes):
        if runtime.compiles or not is_named(lock.head, runtime):
            continue
        if problem := _rejection(lock.head, runtime):
            raise LockFileError(f"{problem}.")
        for path, version in heads.items():
            names = profiles_for(config, path) if version.storage != "link" else ()
            for name in names:
                yield from _change(config, name, version, lock, runtime)


def unmeasured(locks: Sequence[UpgradedLock], runtimes: Sequence[LockedRuntime]) -> Iterator[str]:
    """Yields a line for each runtime whose upgrade is not measured, and for a file that pins
    none."""
    for lock in locks:
        if not any(is_named(lock.head, each) for each in runtimes):
            names = ", ".join(name for each in runtimes for name in each.packages)
            yield f"{lock.head.path} changed, and pins none of {names}: nothing to measure"
    for lock, runtime in product(locks, runtimes):
        if note := _unmeasured_runtime(lock, runtime):
            yield f"{lock.head.path} {note}"


def _unmeasured_runtime(lock: UpgradedLock, runtime: LockedRuntime) -> str:
    if not is_named(lock.head, runtime):
        was_named = lock.base is not None and is_named(lock.base, runtime)
        return f"pins no {runtime.packages[0]} any more: not measured" if was_named else ""
    if not runtime.compiles or _roots(lock.base, runtime) == _roots(lock.head, runtime):
        return ""
    return (
        f"has {_versions(lock, runtime)}: {runtime.title} compiles models, so its upgrade is not "
        "measured; compare two builds with tunegate compare"
    )


def is_named(lock: LockFile, runtime: LockedRuntime) -> bool:
    """Returns whether the file names the runtime's packages, pinned or not."""
    return all(name in lock.pins or name in lock.refused for name in runtime.packages)


def _rejection(lock: LockFile, runtime: LockedRuntime) -> str:
    return next((lock.refused[each] for each in runtime.packages if each in lock.refused), "")


def _change(
    config: Config,
    name: ModelPath,
    version: ModelVersion,
    lock: UpgradedLock,
    runtime: LockedRuntime,
) -> Iterator[ModelChange]:
    targets = tuple(
        target.name
        for target in config.targets
        if target.name in targets_for(config, name)
        if target.runtime in {AUTO, runtime.name} and runtime.runs(target)
    )
    if not targets:
        return
    base = lock.base
    has_base = base is not None and is_named(base, runtime) and not _rejection(base, runtime)
    reason = _versions(lock, runtime) if has_base else _no_base(lock, runtime)
    yield ModelChange(
        path=upgraded_name(name, runtime.name, lock.head.path),
        kind="upgraded",
        change=None,
        base=version if has_base else None,
        head=version,
        targets=targets,
        reason=reason,
    )


def _no_base(lock: UpgradedLock, runtime: LockedRuntime) -> str:
    refused = _rejection(lock.base, runtime) if lock.base is not None else ""
    unpinned = f"at the base, {refused}" if refused else f"the base pins no {runtime.packages[0]}"
    why = lock.reason or unpinned
    return f"nothing to compare with: {why}"


def _versions(lock: UpgradedLock, runtime: LockedRuntime) -> str:
    """Returns both versions, like `onnxruntime 1.19.2 -> 1.20.1`, or how many other pins
    changed."""
    old, new = _roots(lock.base, runtime), _roots(lock.head, runtime)
    if old != new:
        return ", ".join(f"{name} {old[name]} -> {new[name]}" for name in old)
    base = lock.base.pins if lock.base is not None else {}
    names = {*base, *lock.head.pins}
    others = sum(_version(base, name) != _version(lock.head.pins, name) for name in names)
    return f"{', '.join(old)} as before, other pins that changed: {others}"


def _roots(lock: LockFile | None, runtime: LockedRuntime) -> dict[str, str]:
    pins = lock.pins if lock is not None else {}
    return {name: _version(pins, name) for name in runtime.packages}


def _version(pins: Mapping[str, PinnedPackage], name: str) -> str:
    found = pins.get(name)
    return found.version if found is not None else "none"
