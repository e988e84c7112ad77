"""The check whether the waivers of the working tree are readable and match a model."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from pathlib import Path

from tunegate.artifacts.changes import ModelPath
from tunegate.artifacts.waivers import WAIVERS_FILE
from tunegate.config import Config
from tunegate.edges.config.waivers_file import parse_waivers
from tunegate.edges.machine.health_check import HealthCheck
from tunegate.errors import ConfigError
from tunegate.plurals import plural
from tunegate.policy.stray_waivers import stray_waivers
from tunegate.regular_files import opened_inside

_NAME = "waivers"
_MAX_BYTES = 2**20


def waivers_check(
    root: Path, config: Config, models: Sequence[ModelPath] | None, today: datetime.date
) -> Iterator[HealthCheck]:
    """Yields the check of the waivers: nothing without a file; else one line, or one for each
    problem. `models` are the names under which models are gated; where they are None nobody looks
    what a waiver is about."""
    file = opened_inside(root, WAIVERS_FILE)
    if file is None:
        return
    with file:
        body = file.read(_MAX_BYTES + 1)
    if len(body) > _MAX_BYTES:
        yield _no(f"{WAIVERS_FILE}: over 1 MB, which is not read here. Remove what has expired.")
        return
    try:
        waivers = parse_waivers(body.decode(), WAIVERS_FILE, today)
    except UnicodeDecodeError as error:
        yield _no(f"{WAIVERS_FILE}: not UTF-8 ({error}). Save it as text.")
        return
    except ConfigError as error:
        yield from (_no(each) for each in (str(error), *error.others))
        return
    strays = [] if models is None else [*stray_waivers(waivers, config, models)]
    yield from (_no(f"{WAIVERS_FILE}: {each}") for each in strays)
    if not strays:
        counted = f"{WAIVERS_FILE}: {plural(len(waivers), 'waiver')}"
        yield HealthCheck(_NAME, ok=True, detail=counted)


def _no(detail: str) -> HealthCheck:
    return HealthCheck(_NAME, ok=False, detail=detail)
