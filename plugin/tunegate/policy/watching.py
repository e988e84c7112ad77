"""The watched lock files: those of the base, and what the head adds. Where packages come from is
the base's to say: an index of the head's counts once it is merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tunegate.artifacts.changes import Effect, PolicyChange
from tunegate.config import WatchConfig
from tunegate.globs import matches
from tunegate.policy.written import written


def merged_watch(base: WatchConfig, head: WatchConfig) -> WatchConfig:
    """More files are stricter."""
    return msgspec.structs.replace(base, files=tuple(dict.fromkeys((*base.files, *head.files))))


def watch_changes(base: WatchConfig, head: WatchConfig) -> Iterator[PolicyChange]:
    """A change for each glob that is gone or new, and one for other indexes."""
    for glob in base.files:
        if glob not in head.files:
            yield _change("files", glob, "removed", "loosened")
    for glob in head.files:
        if glob not in base.files:
            yield _change("files", "not set", glob, "tightened")
    if base.indexes != head.indexes:
        old, new = (written(list(each.indexes)) for each in (base, head))
        yield _change("indexes", old, new, "changed")


def unmatched_globs(watch: WatchConfig, paths: Iterable[str]) -> Iterator[str]:
    """A line for each glob that watches nothing, as none of the paths matches it."""
    known = [*paths]
    for glob in watch.files:
        if not any(matches(glob, path) for path in known):
            yield f"watch.files: {glob} matches no committed file, so it watches nothing"


def _change(key: str, old: str, new: str, effect: Effect) -> PolicyChange:
    counts = "now" if effect == "tightened" else "once merged"
    return PolicyChange(
        key=f"watch.{key}",
        old=old,
        new=new,
        effect=effect,
        counts=counts,  # type: ignore[arg-type]
    )
