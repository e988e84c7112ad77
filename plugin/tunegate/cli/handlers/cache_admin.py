"""Opens the configured cache for maintenance: the store itself, with no run around it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate.config import CacheConfig, Config, ModelConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError, RevisionError
from tunegate.redaction import redact
from tunegate.review import config_file
from tunegate.runtimes.registry import may_compile
from tunegate.settings import Settings, apply_overrides
from tunegate.system.cache.shared_cache import open_shared_store, require_signing, signing_key
from tunegate.system.git.repository import GitRepository
from tunegate_cache.format.names import Group
from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.maintenance.compaction import Compactor
from tunegate_cache.maintenance.summary import GroupSummary, summary
from tunegate_cache.protocol import group_state
from tunegate_cache.stores.store import (
    MaintainedStore,
    StoreTimedOutError,
    StoreUnavailableError,
)

_T = TypeVar("_T")
_MOST_TIME_OUTS = 2
"""After so many in a row no other group is asked for: each takes its whole time."""


class CacheAdmin(msgspec.Struct, frozen=True, kw_only=True):
    """`root` is the repository's, or the working directory without a repository. `is_compiled`
    means that a target of the configuration may compile."""

    config: CacheConfig
    is_compiled: bool
    root: Path
    store: MaintainedStore
    keys: TrustedKeys
    signer: Signer | None

    @property
    def location(self) -> str:
        """Returns the address to show: that of an installed store may have a password in it."""
        return redact(self.config.url, ())

    @property
    def zones(self) -> tuple[str, ...]:
        """Returns the configured zones, the written one first."""
        return tuple(dict.fromkeys((self.config.zone, *self.config.read_zones)))

    def groups(self, zone: str | None) -> tuple[Group, ...]:
        return group_state.groups(self.store, zone)

    def summaries(self) -> tuple[tuple[GroupSummary, ...], tuple[str, ...]]:
        return self.of_each_group(None, lambda group: summary(self.store, group, self.keys))

    def of_each_group(
        self, zone: str | None, work: Callable[[Group], _T]
    ) -> tuple[tuple[_T, ...], tuple[str, ...]]:
        """Returns the results for the groups, and a line for each that cannot be read, or needs
        another key: a pull request may write its zone, and must not stop the work on others. Raises
        StoreUnavailableError or ConfigError if there is no result."""
        results: list[_T] = []
        unread: dict[Group, StoreUnavailableError | ConfigError] = {}
        time_outs = 0
        groups, problems = self._list_groups(zone)
        for group in groups:
            if time_outs == _MOST_TIME_OUTS:
                unread[group] = StoreTimedOutError("not asked: those before it timed out")
                continue
            try:
                results.append(work(group))
                time_outs = 0
            except (StoreUnavailableError, ConfigError) as error:
                unread[group] = error
                time_outs = time_outs + 1 if isinstance(error, StoreTimedOutError) else 0
        if unread and not results:
            raise next(iter(unread.values()))
        lines = dict.fromkeys(f"{group.zone}: left out, {e}" for group, e in unread.items())
        return tuple(results), (*lines, *problems)

    def _list_groups(self, zone: str | None) -> tuple[tuple[Group, ...], tuple[str, ...]]:
        """Returns the groups of the zone, or of all. Where a folder was closed by its owner, those
        of the others, and a line; where a role may not list all, those of the configured zones.
        Raises StoreUnavailableError."""
        try:
            return self.groups(zone), ()
        except StoreUnavailableError as error:
            if zone is not None or isinstance(error, StoreTimedOutError):
                raise
            if error.listed:
                return group_state.groups_among(error.listed), (f"left out: {error}",)
            try:
                groups = tuple(group for each in self.zones for group in self.groups(each))
            except StoreUnavailableError:
                raise error from None
            return groups, (f"zones but {', '.join(self.zones)}: left out, {error}",)

    def compactor(self, group: Group) -> Compactor:
        """Raises ConfigError without a key that the zone trusts: its HEAD would be refused."""
        require_signing(self.config, group.zone)
        return Compactor(self.store, group, keys=self.keys, signer=self.signer)


def open_cache_admin(settings: Settings) -> CacheAdmin:
    """Opens the configured cache, or without a configuration the default cache. Raises
    ConfigError."""
    whole, root = _config(settings)
    config = whole.cache
    return CacheAdmin(
        config=config,
        is_compiled=may_compile(whole.targets),
        root=root,
        store=open_shared_store(config, root=root),
        keys=TrustedKeys(config.trusted_keys),
        signer=signing_key(),
    )


@contextmanager
def answering(config: CacheConfig) -> Iterator[None]:
    """Turns a cache failure into the command's: it has nothing else to work with."""
    try:
        yield
    except StoreUnavailableError as error:
        message = f"the cache {config.url} does not answer ({error}). Run tunegate cache doctor."
        raise EnvironmentUnfitError(message) from error


def _config(settings: Settings) -> tuple[Config, Path]:
    try:
        root = GitRepository(settings.repository).root
    except RevisionError:
        root = settings.repository
    path = settings.config or root / config_file.CONFIG_FILE
    if settings.config is not None or path.exists():
        config = config_file.load_config(path)
    else:
        config = Config(models=(ModelConfig(path="**"),))
    return apply_overrides(config, settings.overrides), root
