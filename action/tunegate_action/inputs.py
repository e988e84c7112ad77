"""What the workflow asks for: environment variables to a frozen struct."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast, get_args

import msgspec

from tunegate.errors import ConfigError

Stage = Literal["all", "plan", "tune", "gate"]
_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no"}


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """`budget` and `cache` are options of the command line, passed on as they are. The token has
    no place in any text of this struct."""

    stage: Stage
    base: str
    head: str
    since_release: bool
    out: Path
    shard: str
    shards: str
    config: str
    budget: tuple[str, ...]
    cache: tuple[str, ...]
    comment: bool
    token: Secret


class Secret:
    """A text that never shows itself."""

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "***" if self._text else "''"


_BUDGET = {"MINUTES": "--minutes", "USD": "--usd", "TRIALS": "--trials"}
_CACHE = {"CACHE_URL": "--cache-url", "CACHE_ENDPOINT_URL": "--cache-endpoint-url"}


def read_inputs(environment: Mapping[str, str]) -> Inputs:
    """Raises ConfigError naming the input."""

    def value(name: str) -> str:
        return environment.get(f"TUNEGATE_{name}", "").strip()

    def options(known: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(f"{option}={value(name)}" for name, option in known.items() if value(name))

    return Inputs(
        stage=_stage(value("STAGE") or "all"),
        base=value("BASE"),
        head=value("HEAD"),
        since_release=_boolean("since-release", value("SINCE_RELEASE") or "false"),
        out=Path(value("OUT") or ".tunegate"),
        shard=value("SHARD") or "0",
        shards=value("SHARDS"),
        config=value("CONFIG"),
        budget=options(_BUDGET),
        cache=options(_CACHE),
        comment=_boolean("comment", value("COMMENT") or "true"),
        token=Secret(value("GITHUB_TOKEN")),
    )


def _stage(text: str) -> Stage:
    if text not in get_args(Stage):
        message = f'input stage: "{text}" is not one of all, plan, tune, gate.'
        raise ConfigError(message)
    return cast("Stage", text)


def _boolean(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    message = f'input {name}: "{text}" is neither true nor false.'
    raise ConfigError(message)
