"""The runtimes of this installation as a lock file knows them: by their packages."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tunegate.config import TargetConfig
from tunegate.runtimes.registry import installed_runtimes, saves
from tunegate.runtimes.runtime import Runtime
from tunegate_upgrades.lock_files.lock import normal_name


class LockedRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """`packages` are the runtime's own. `runs` returns whether it runs on a target; one that
    `compiles` ahead is not gated by its packages alone."""

    name: str
    title: str
    packages: tuple[str, ...]
    runs: Callable[[TargetConfig], bool]
    compiles: bool = False


def locked_runtimes() -> tuple[LockedRuntime, ...]:
    """Imports all runtimes, and leaves out those whose packages are not installed."""
    found = map(_packages_of, installed_runtimes().runtimes)
    return tuple(each for each in found if each.packages)


def _packages_of(runtime: Runtime) -> LockedRuntime:
    return LockedRuntime(
        name=runtime.name,
        title=runtime.title,
        packages=tuple(map(normal_name, runtime.versions())),
        runs=lambda target: not runtime.unsupported(target),
        compiles=not saves(runtime),
    )
