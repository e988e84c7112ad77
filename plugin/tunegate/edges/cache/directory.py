"""The cache's directory where it lies in the checkout: nothing that was committed is trusted."""

from __future__ import annotations

import os
from pathlib import Path

from tunegate.config import DEFAULT_CACHE_URL
from tunegate.edges.cache.user_directories import cache_home
from tunegate.edges.git.tracked import first_tracked
from tunegate.edges.git.working_tree import working_tree
from tunegate.errors import ConfigError


def cache_directory(url: str, root: Path) -> Path:
    """A relative one lies under `root`. Raises ConfigError for one that the
    checkout brings: through a link it would be anywhere, and files in it would be
    records that nobody has measured."""
    named = cache_home() if url == DEFAULT_CACHE_URL else Path(url).expanduser()
    directory = Path(os.path.normpath(root / named))
    top = working_tree(root)
    if top is None or not directory.is_relative_to(top):
        return directory
    inside = directory.relative_to(top)
    for each in (inside, *inside.parents):
        if each != Path() and (top / each).is_symlink():
            message = f"cache.url: {url}: {each} is a symbolic link of the checkout. Remove it."
            raise ConfigError(message)
    if first_tracked(top, directory) != "":
        message = (
            f"cache.url: {url}: git tracks files in it, so whoever changes the checkout would "
            "choose what the cache says. Remove them from git, or use a directory outside of it."
        )
        raise ConfigError(message)
    return directory
