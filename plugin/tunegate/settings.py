"""The settings of the command line, and how they override the file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from tunegate.config import BudgetConfig, CacheConfig, Config, GateConfig

CacheMode = Literal["off", "ro", "rw"]
CommentWhen = Literal["always", "on-change", "on-alert", "never"]
_Section = TypeVar("_Section", bound=BudgetConfig | CacheConfig | GateConfig)


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the file that an argument replaces; None leaves the file's."""

    minutes: float | None = None
    usd: float | None = None
    trials: int | None = None
    margin_percent: float | None = None
    cache_url: str | None = None
    cache_endpoint_url: str | None = None
    cache_mode: CacheMode | None = None
    zone: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one invocation. `config` None is `tunegate.yaml` of the
    repository, `seed` None a new one."""

    repository: Path = Path()
    config: Path | None = None
    out: Path = Path(".tunegate")
    base: str | None = None
    policy: str | None = None
    head: str | None = None
    since_release: bool = False
    no_base: bool = False
    overrides: Overrides = Overrides()
    metric_command: str = ""
    metric_margin: float = 0.0
    seed: int | None = None
    as_json: bool = False


def overridden(config: Config, by: Overrides) -> Config:
    """The configuration with the arguments laid over it. The zone that the file names is the team's
    own, and one that is read; one that only an argument names is written."""
    return msgspec.structs.replace(
        config,
        budget=_replaced(config.budget, minutes=by.minutes, usd=by.usd, trials=by.trials),
        gate=_replaced(
            config.gate,
            margin_percent=by.margin_percent,
            release_margin_percent=by.margin_percent,
        ),
        cache=_replaced(
            config.cache,
            url=by.cache_url,
            endpoint_url=by.cache_endpoint_url,
            mode=by.cache_mode,
            zone=by.zone,
            read_zones=tuple(dict.fromkeys((config.cache.zone, *config.cache.read_zones))),
        ),
    )


def _replaced(section: _Section, **values: object) -> _Section:
    given = {name: value for name, value in values.items() if value is not None}
    return msgspec.structs.replace(section, **given)
