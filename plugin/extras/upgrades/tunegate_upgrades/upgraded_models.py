"""The models that run under a lock file's packages, as changes of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from tunegate.artifacts.changes import (
    ModelChange,
    ModelPath,
    ModelVersion,
    PolicyChange,
    upgraded_name,
)
from tunegate.config import AUTO, Config
from tunegate.review.model_settings import profiles_for, targets_for
from tunegate_upgrades.lock_files.lock import LockFile, LockFileError
from tunegate_upgrades.locked_runtimes import LockedRuntime
from tunegate_upgrades.upgraded_locks import UpgradedLock, unmeasured_move


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


def unmeasured_moves(
    locks: Sequence[UpgradedLock], runtimes: Sequence[LockedRuntime]
) -> Iterator[PolicyChange]:
    """Yields each package of a compiler that a lock file moves, and of a runtime that it pins no
    more. This run compiles with what is installed here, and nothing says what will run, so nothing
    measures the move, and someone must agree to it."""
    for lock, runtime in product(locks, runtimes):
        if lock.base is None or not (runtime.compiles or _is_dropped(lock, runtime)):
            continue
        for name in runtime.packages:
            old, new = _version(lock.base, name), _version(lock.head, name)
            if old != new:
                yield unmeasured_move(lock.head.path, name, old, new)


_TOOLCHAIN = re.compile(
    r"(apache-tvm|tvm|mlc-ai|onnxruntime|ort-|openvino|tensorrt).*|(nvidia|cuda)-.+"
)
"""Packages that decide what runs, whether or not their runtime is installed here: some install
over another, as ort-nightly does."""
_MOST_TOLD, _OPEN = 6, "not pinned"


def unmeasured_upgrades(
    locks: Sequence[UpgradedLock], runtimes: Sequence[LockedRuntime]
) -> Iterator[str]:
    """Yields a line for each runtime whose upgrade is not measured, for other packages of a
    toolchain, and for a file that pins none."""
    for lock in locks:
        told = [*_unmeasured_lines(lock, runtimes)]
        if not told and not any(is_named(lock.head, each) for each in runtimes):
            names = ", ".join(name for each in runtimes for name in each.packages)
            told = [f"changed, and pins none of {names}: nothing to measure"]
        yield from (f"{lock.head.path} {each}" for each in told)


def _unmeasured_lines(lock: UpgradedLock, runtimes: Sequence[LockedRuntime]) -> Iterator[str]:
    for runtime in runtimes:
        if _is_dropped(lock, runtime):
            yield f"pins no {runtime.packages[0]} any more: not measured"
        elif runtime.compiles and (changed := _changed_packages(lock, runtime.packages)):
            yield (
                f"has {', '.join(changed)}: {runtime.title} compiles models, so its upgrade is not "
                "measured; compare two builds with tunegate compare"
            )
    if lock.base is None:
        return
    sides = (lock.base, lock.head)
    gated = {
        name
        for runtime in runtimes
        if runtime.compiles or any(is_named(side, runtime) for side in sides)
        for name in runtime.packages
    }
    names = {name for side in sides for name in (*side.pins, *side.refused)} - gated
    known = {name for runtime in runtimes for name in runtime.packages}
    others = sorted(name for name in names if name in known or _TOOLCHAIN.fullmatch(name))
    if changed := _changed_packages(lock, others):
        more = [f"{len(changed) - _MOST_TOLD} more"] if len(changed) > _MOST_TOLD else []
        yield (
            f"has {', '.join([*changed[:_MOST_TOLD], *more])}: no runtime here is gated by that, "
            "so it is measured only where a gated one requires it; compare two environments with "
            "tunegate compare --env"
        )


def _is_dropped(lock: UpgradedLock, runtime: LockedRuntime) -> bool:
    return lock.base is not None and is_named(lock.base, runtime) > is_named(lock.head, runtime)


def is_named(lock: LockFile, runtime: LockedRuntime) -> bool:
    """Returns whether the file names the runtime's packages, pinned or not. A compiler is installed
    from nowhere, so one of its packages is enough."""
    wanted = any if runtime.compiles else all
    return wanted(name in lock.pins or name in lock.refused for name in runtime.packages)


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
    if changed := _changed_packages(lock, runtime.packages):
        return ", ".join(changed)
    base = lock.base.pins if lock.base is not None else {}
    names = {*base, *lock.head.pins}
    others = sum(_version(lock.base, name) != _version(lock.head, name) for name in names)
    return f"{', '.join(runtime.packages)} as before, other pins that changed: {others}"


def _changed_packages(lock: UpgradedLock, names: Iterable[str]) -> list[str]:
    """Returns both versions of each package that differs, or is in any version at the head."""
    both = ((name, _version(lock.base, name), _version(lock.head, name)) for name in names)
    return [f"{name} {old} -> {new}" for name, old, new in both if old != new or new == _OPEN]


def _version(lock: LockFile | None, name: str) -> str:
    if lock is None or name not in {*lock.pins, *lock.refused}:
        return "none"
    return lock.pins[name].version if name in lock.pins else _OPEN
