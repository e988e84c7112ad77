"""Words that many messages share: numbers with what they count, hints, and addresses of pages."""

import difflib
from collections.abc import Mapping, Sequence

# Numbers with what they count.


def plural(number: int, singular: str, plural: str | None = None) -> str:
    """Returns a count such as `1 task`, `2 tasks` and `3,000 tasks`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


RUN_DOCTOR = "Run tunegate doctor on this machine"
"""The advice where a device is gone."""


# The hint after an unknown word.


def did_you_mean(word: str, words: Sequence[str], otherwise: str) -> str:
    """Returns the most similar known word as a question, `otherwise` if none is similar."""
    near = difflib.get_close_matches(word, words, n=1)
    return f"Did you mean {near[0]}?" if near else otherwise


# The address of a page of the documentation. An installed package has no `docs/`.

PAGES = "https://github.com/tunegate/tunegate/tree/main/docs"
"""The address in `pyproject.toml`."""


def page_address(name: str) -> str:
    """Returns the address of a page, for a message."""
    return f"{PAGES}/{name}.md"


# A latency with its unit, as people read it.

NO_NUMBER = "–"


def milliseconds(value: float | None, digits: int = 4) -> str:
    """Returns the latency with `digits` significant digits, in the unit that keeps them
    readable."""
    if value is None:
        return NO_NUMBER
    if abs(value) >= 10_000:  # noqa: PLR2004  # ten seconds
        return f"{_significant(value / 1000, digits)} s"
    if abs(value) >= 0.1:  # noqa: PLR2004  # a hundred microseconds
        return f"{_significant(value, digits)} ms"
    return f"{_significant(value * 1000, digits)} µs"


def compared_times(own: float, other: float, than: str = "") -> str:
    """Returns how much faster ours is, in percent of the other: `51% faster`, followed by ` than
    …`. A slower one may have won an election, because only a clear gain displaces a winner."""
    percent = 100 * (1 - own / other)
    beside = f" than {than}" if than else ""
    if percent < 0:
        return f"{-percent:.0f}% slower{beside} (not clearly)"
    return f"{percent:.0f}% faster{beside}"


def _significant(value: float, digits: int) -> str:
    """Rounds first: 0.99996 then has one digit before the point."""
    short = float(f"{value:.{digits}g}")
    whole = 0 if 0 < abs(short) < 1 else len(str(int(abs(short))))
    return f"{value:.{max(0, digits - whole)}f}"


def raise_key(key: str, name: str, *, to: int | None = None) -> str:
    """Returns the advice to raise a key by its option and input of this name. A pull request is
    judged by the base's file, so the remedy that works at once comes first."""
    value = "" if to is None else f" to {to}"
    return f"raise --{name}{value}, or the Action's input {name} ({key} counts once it is merged)"


# The check whether something else kept the machine busy.

_OWN_LOAD = 1.0
"""Measuring itself adds this much load: the two sides take turns."""


def busy_load(environment: Mapping[str, str]) -> str:
    """Returns `the load was 13.7 on 2 cores` if the load was too high, else ''. Missing or
    non-numeric facts give ''."""
    try:
        load = float(environment["load average"].split()[0])
        cores = int(environment["cores"])
    except (KeyError, IndexError, ValueError):
        return ""
    if load < cores + _OWN_LOAD:
        return ""
    return f"the load was {load:.1f} on {plural(cores, 'core')}"
