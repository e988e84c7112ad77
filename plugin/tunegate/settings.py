"""The settings of the command line, and how they override the file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from tunegate.config import BudgetConfig, CacheConfig, Config, GateConfig
from tunegate.config_key import keys_of

CommentWhen = Literal["always", "on-change", "on-alert", "never"]
_Section = TypeVar("_Section", bound=BudgetConfig | CacheConfig | GateConfig)


class Overrides(msgspec.Struct, frozen=True):
    """Values that arguments put in place of the file's, by key, such as `budget.minutes`."""

    values: Mapping[str, Any] = {}

    def get(self, key: str) -> Any:  # noqa: ANN401  # as the key declares it
        """Returns None where no argument replaces the key."""
        return self.values.get(key)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one invocation. Without `config` it is `tunegate.yaml` of the repository,
    without `seed` a new one."""

    repository: Path = Path()
    config: Path | None = None
    out: Path = Path(".tunegate")
    base: str | None = None
    policy: str | None = None
    chosen_by: str = ""
    head: str | None = None
    since_release: bool = False
    no_base: bool = False
    overrides: Overrides = Overrides()
    metric_command: str = ""
    metric_margin: float = 0.0
    seed: int | None = None
    as_json: bool = False


def apply_overrides(config: Config, by: Overrides) -> Config:
    """Returns the configuration with the arguments laid over it. A zone in the file is the team's
    and is read; a zone named only by an argument is written."""
    read_zones = tuple(dict.fromkeys((config.cache.zone, *config.cache.read_zones)))
    cache = msgspec.structs.replace(config.cache, read_zones=read_zones)
    return msgspec.structs.replace(
        config,
        budget=_replace_keys(config.budget, "budget", by),
        gate=_replace_keys(config.gate, "gate", by),
        cache=_replace_keys(cache, "cache", by),
    )


def _replace_keys(section: _Section, place: str, by: Overrides) -> _Section:
    values: dict[str, object] = {}
    for key in keys_of(type(section), place):
        if (value := by.get(key.place)) is not None:
            values |= dict.fromkeys(filter(None, (key.field, key.key.also)), value)
    return msgspec.structs.replace(section, **values)
