"""`tunegate-waivers.yaml`: who may be slower, how much, until when, and why.

The file is read from the revision that is checked. Protect it with CODEOWNERS: who may
change it may let a slowdown pass.
"""

from __future__ import annotations

import datetime

import msgspec
import yaml

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.waivers import Waiver
from tunegate.edges.config.strict_yaml import YamlProblemError, read_yaml
from tunegate.errors import ConfigError, ConfigKey

WAIVERS_FILE = "tunegate-waivers.yaml"
MAX_VALIDITY = datetime.timedelta(days=90)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    waivers: tuple[Waiver, ...]


def parse_waivers(text: str, where: str, today: datetime.date) -> tuple[Waiver, ...]:
    """Raises ConfigError for what cannot be understood, for two waivers of one model and target,
    and for one that would last longer than 90 days."""
    try:
        waivers = msgspec.convert(read_yaml(text) or {"waivers": []}, _File).waivers
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        reason = " ".join(str(error).splitlines())
        message = (
            f"{where}: {reason}. A waiver has model, target, "
            "ceiling-percent, expires, issue, reason."
        )
        line = error.line if isinstance(error, YamlProblemError) else 0
        raise ConfigError(message, ConfigKey(where, line=line)) from error
    seen: set[Cell] = set()
    for waiver in waivers:
        problem = waivers_problem(waiver, today)
        if waiver.cell in seen:
            problem = "it is waived twice. Keep one."
        seen.add(waiver.cell)
        if problem:
            text = f"{where}: {waiver.model} on {waiver.target}: {problem}"
            raise ConfigError(text, ConfigKey(where, "waivers"))
    return waivers


def waivers_problem(waiver: Waiver, today: datetime.date) -> str:
    """What is wrong with one that can be read, or an empty string."""
    if waiver.expires > today + MAX_VALIDITY:
        latest = today + MAX_VALIDITY
        return f"expires {waiver.expires} is over 90 days ahead. Write {latest} or earlier."
    if not waiver.ceiling_percent > 0:
        return "ceiling-percent is how much slower it may be. Write a number above zero."
    if not waiver.issue.strip() or not waiver.reason.strip():
        return "issue and reason say why. Fill them in."
    return ""
