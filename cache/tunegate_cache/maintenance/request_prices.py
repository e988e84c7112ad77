"""Costs of requests to a store, at list prices."""

from __future__ import annotations

from collections.abc import Mapping


def usd_of(requests: Mapping[str, int], usd_per_1000: Mapping[str, float]) -> float:
    """Returns the price of `requests`, counted by verb."""
    return sum(usd_per_1000.get(verb, 0.0) * count / 1000 for verb, count in requests.items())
