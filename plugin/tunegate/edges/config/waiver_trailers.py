"""`Tunegate-Waiver: {model: ..., target: ..., ceiling-percent: ..., issue: ..., reason: ...}` in
the message of a commit: a waiver for the pull request that has the commit, and for no other.

Whoever may write a commit may write one: they count where `gate.waiver-trailers` says so.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.waivers import Waiver
from tunegate.edges.config.strict_yaml import YamlProblemError, read_yaml
from tunegate.edges.config.waiver_problems import waiver_problems
from tunegate.edges.config.waivers_file import terms_problems
from tunegate.errors import ConfigError, config_error
from tunegate.ports import Trailer

WAIVER_TRAILER = "Tunegate-Waiver"
_FIELDS = "{model: ..., target: ..., ceiling-percent: ..., issue: ..., reason: ...}"


def parse_trailers(trailers: Iterable[Trailer], today: datetime.date) -> tuple[Waiver, ...]:
    """One for a model and target, that of the newest commit. Raises ConfigError for what cannot be
    understood."""
    found: dict[Cell, Waiver] = {}
    for trailer in trailers:
        waiver = _parsed(trailer, today)
        found.setdefault(waiver.cell, waiver)
    return tuple(found.values())


def _parsed(trailer: Trailer, today: datetime.date) -> Waiver:
    where = f"{WAIVER_TRAILER} of commit {trailer.commit[:12]}"
    try:
        fields = read_yaml(trailer.value)
        if not isinstance(fields, dict) or "expires" in fields:
            raise ConfigError(f"{where}: it holds for its pull request only. Write {_FIELDS}.")
    except YamlProblemError as error:
        raise ConfigError(f"{where}: {error} Write {_FIELDS}.") from error
    entry = {**fields, "expires": today}
    _refuse(where, waiver_problems(entry))
    waiver = msgspec.convert(entry, Waiver)
    told = terms_problems(waiver, today)
    _refuse(where, [f"{waiver.model} on {waiver.target}: {each}" for each in told])
    return waiver


def _refuse(where: str, problems: Sequence[str]) -> None:
    if problems:
        raise config_error([f"{where}: {' '.join(each.splitlines())}" for each in problems])
