"""`tunegate-waivers.yaml`: who may be slower, how much, until when, and why.

The file is read from the revision that is checked. Protect it with CODEOWNERS: who may
change it may let a slowdown pass.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.waivers import ISSUE_TO_WRITE, REASON_TO_WRITE, Waiver
from tunegate.edges.config.strict_yaml import YamlProblemError, read_yaml
from tunegate.edges.config.waiver_problems import file_problems
from tunegate.errors import ConfigError, ConfigKey, config_error

MAX_VALIDITY = datetime.timedelta(days=90)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    waivers: tuple[Waiver, ...]


def parse_waivers(text: str, where: str, today: datetime.date) -> tuple[Waiver, ...]:
    """Raises ConfigError with all that is wrong: what cannot be understood, two waivers of one
    model and target, and one that would last longer than 90 days."""
    try:
        content = read_yaml(text) or {"waivers": []}
    except YamlProblemError as error:
        raise ConfigError(f"{where}: {error}", ConfigKey(where, line=error.line)) from error
    problems = file_problems(content)
    if not problems:
        waivers = msgspec.convert(content, _File).waivers
        problems = tuple(_problems(waivers, today))
        if not problems:
            return waivers
    lines = [f"{where}: {' '.join(each.splitlines())}" for each in problems]
    raise config_error(lines, ConfigKey(where, "waivers"))


def _problems(waivers: Iterable[Waiver], today: datetime.date) -> Iterator[str]:
    """Yields the problems of readable waivers, one line each."""
    seen: set[Cell] = set()
    for waiver in waivers:
        twice = ("it is waived twice. Keep one.",) if waiver.cell in seen else ()
        seen.add(waiver.cell)
        for problem in (*terms_problems(waiver, today), *twice):
            yield f"{waiver.model} on {waiver.target}: {problem}"


def terms_problems(waiver: Waiver, today: datetime.date) -> Iterator[str]:
    """Yields the problems of a readable waiver's terms."""
    if waiver.expires > today + MAX_VALIDITY:
        latest = today + MAX_VALIDITY
        yield f"expires {waiver.expires} is over 90 days ahead. Write {latest} or earlier."
    if not waiver.ceiling_percent > 0:
        yield "ceiling-percent is how much slower it may be. Write a number above zero."
    if not waiver.issue.strip() or not waiver.reason.strip():
        yield "issue and reason say why. Fill them in."
    left = [
        name
        for name, words in (("issue", waiver.issue), ("reason", waiver.reason))
        if words.strip() in {ISSUE_TO_WRITE, REASON_TO_WRITE}
    ]
    if left:
        have = "has" if len(left) == 1 else "have"
        yield f"{' and '.join(left)} {have} the words of the offer. Replace what stands in <…>."
