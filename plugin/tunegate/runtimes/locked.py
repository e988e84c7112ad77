"""The runtimes of this installation as lock files know them."""

from __future__ import annotations

from tunegate.lock_files.lock import normal_name
from tunegate.lock_files.locked_runtime import LockedRuntime
from tunegate.runtimes.registry import installed_runtimes, saves
from tunegate.runtimes.runtime import Runtime


def locked_runtimes() -> tuple[LockedRuntime, ...]:
    """Imports all of them. One whose packages are not installed is left out."""
    found = map(_locked, installed_runtimes().runtimes)
    return tuple(each for each in found if each.packages)


def _locked(runtime: Runtime) -> LockedRuntime:
    return LockedRuntime(
        name=runtime.name,
        title=runtime.title,
        packages=tuple(map(normal_name, runtime.versions())),
        runs=lambda target: not runtime.unsupported(target),
        compiles=not saves(runtime),
    )
