"""Advice for a change that touches no model: before the first one, fill the cache."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.artifacts.changes import ChangeSet
from tunegate.config import Config
from tunegate.edges.cache.shared_cache import objects_in_zone
from tunegate.errors import ConfigError
from tunegate.plurals import plural
from tunegate_cache.stores.store import StoreUnavailableError


def what_to_do(config: Config, changes: ChangeSet, root: Path) -> ChangeSet:
    """The changes with a note on the cache: one listing of it, and no compiler is started. A
    cache that does not answer is no trouble here. A change of rules, such as a waiver, is about
    other things."""
    if config.cache.mode == "off" or not changes.unchanged or changes.policy_changes:
        return changes
    count = len(changes.unchanged)
    models, needs = plural(count, "model"), "needs" if count == 1 else "need"
    try:
        is_empty = not objects_in_zone(config.cache, root=root)
    except (StoreUnavailableError, ConfigError):
        return changes
    if is_empty:
        note = f"the cache has nothing yet: tunegate warm tunes what the {models} here {needs}"
    else:
        note = f"nothing was tuned: tunegate doctor says what the cache knows of the {models} here"
    return msgspec.structs.replace(changes, notes=(*changes.notes, note))
