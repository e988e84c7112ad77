"""What requests to a bucket cost at list prices (S3 standard, us-east-1). Traffic between a bucket
and runners of its region is free."""

from __future__ import annotations

from collections.abc import Mapping

USD_PER_1000 = {"put": 0.005, "list": 0.005, "get": 0.0004}


def usd_of(requests: Mapping[str, int]) -> float:
    """`requests` counts by verb."""
    return sum(USD_PER_1000.get(verb, 0.0) * count / 1000 for verb, count in requests.items())
