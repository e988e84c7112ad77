"""A runtime as a lock file knows it: by the packages that it is."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from tunegate.config import TargetConfig


class LockedRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """`packages` are those that it is. `runs` says whether it runs on a target; one that `compiles`
    beforehand is not gated by its packages alone."""

    name: str
    title: str
    packages: tuple[str, ...]
    runs: Callable[[TargetConfig], bool]
    compiles: bool = False
