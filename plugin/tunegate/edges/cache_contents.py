"""What the configured cache holds, counted from its segments."""

from __future__ import annotations

from pathlib import Path

from tunegate.config import CacheConfig
from tunegate.edges.shared_cache import open_store
from tunegate.errors import EnvironmentUnfitError
from tunegate_cache.store import StoreUnavailableError
from tunegate_cache.summary import PlaceSummary, summary


def cache_contents(config: CacheConfig, *, root: Path) -> tuple[PlaceSummary, ...]:
    """Raises EnvironmentUnfitError where the store does not answer."""
    try:
        return summary(open_store(config, root=root))
    except StoreUnavailableError as error:
        message = f"the cache does not answer ({error}). Run tunegate doctor."
        raise EnvironmentUnfitError(message) from error
