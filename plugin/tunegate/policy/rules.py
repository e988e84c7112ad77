"""Which of two values counts, for each key of the configuration.

A key that is named here has an order: the stricter value counts, whoever wrote it. Every other key
has none: the base's value counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Strictness = Callable[[Any], float]
"""The larger the number, the stricter the value."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one section. `ordered` are keys with an order; `filled` are keys that the head
    may set where the base has none."""

    ordered: Mapping[str, Strictness] = {}
    filled: frozenset[str] = frozenset()


def smaller(value: float | None) -> float:
    """The smaller, the stricter; no value at all is no limit."""
    return -math.inf if value is None else -value


def rarer(share: float) -> float:
    """The rarer what is looked for, the stricter; 0 looks for nothing."""
    return -share if share else -math.inf


def larger(value: float) -> float:
    return value


def larger_if_any(value: float | None) -> float:
    """The larger, the stricter; no value at all is no limit."""
    return -math.inf if value is None else value


def later(*values: str) -> Strictness:
    """The values from the loosest to the strictest."""
    return values.index


GATE = Rules(
    ordered={
        "margin_percent": smaller,
        "release_margin_percent": smaller,
        "size_margin_percent": smaller,
        "memory_margin_percent": smaller,
        "workspace_margin_percent": smaller,
        "energy_margin_percent": smaller,
        "tail_margin_percent": smaller,
        "rare_launches": rarer,
        "absolute_floor_us": smaller,
        "inconclusive": later("warn", "fail"),
        "policy_changes": later("report", "fail"),
        "waivers_from": later("head", "base"),
        "waiver_trailers": smaller,
    }
)
# A change that is tuned less, or built from fewer records, is not judged more strictly: a base
# below its best lets a slower head pass.
BUDGET = Rules()
CACHE = Rules()
TARGET = Rules(filled=frozenset({"usd_per_hour", "expect_gpu"}))
ACCURACY = Rules(ordered={"max_error": smaller, "min_agreement": larger_if_any})
METRIC_COMMAND = Rules(ordered={"at_most": smaller})
"""Two bounds on the same command have an order; of two commands the base's runs."""
OBJECTIVE = Rules(ordered={"ms": smaller, "percentile": larger})
