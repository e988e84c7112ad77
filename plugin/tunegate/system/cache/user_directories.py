"""The directories of this user's cache and state, by the XDG base directories.

What an earlier version left under `~/.cache/tunegate` stays in use, so that nothing has to be tuned
again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tunegate.config import DEFAULT_CACHE_URL

_CACHE_PARTS = ("ms1", "tier")
_STATE_PARTS = ("undelivered", "seen")


def cache_home(variables: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of the default cache, and of copies of a remote one."""
    return _home("XDG_CACHE_HOME", _CACHE_PARTS, variables)


def state_home(variables: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of what must outlive a cache: undelivered records, seen heads."""
    return _home("XDG_STATE_HOME", _STATE_PARTS, variables)


def _home(name: str, parts: tuple[str, ...], variables: Mapping[str, str]) -> Path:
    """Returns the directory that already holds a part, else the one in the variable. A relative one
    would depend on the working directory, which may be a checkout: it is ignored."""
    usual = Path(DEFAULT_CACHE_URL).expanduser()
    base = Path(variables.get(name, ""))
    if not base.is_absolute():
        return usual
    named = base / "tunegate"
    used = (place for place in (named, usual) if any((place / part).exists() for part in parts))
    return next(used, named)
