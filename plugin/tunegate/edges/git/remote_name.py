"""The name of a repository on its server. Pure."""

from __future__ import annotations

import re

_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/(?P<path>.*)", re.IGNORECASE)
_SHORT = re.compile(r"[^/]*:(?P<path>.*)")
"""The form `user@host:path` of SSH."""
_NAME = re.compile(r"[\w][\w.-]*(/[\w][\w.-]*)*", re.ASCII)


def name_of_remote(address: str) -> str:
    """The path, as in `owner/name`: never the host's part, where a secret may stand. '' for a
    directory, and for what is no name."""
    found = _URL.fullmatch(address) or _SHORT.fullmatch(address)
    if found is None or address.startswith("file:"):
        return ""
    path = found["path"].strip("/").removesuffix(".git")
    return path if _NAME.fullmatch(path) else ""
