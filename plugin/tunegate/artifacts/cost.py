"""The price of work, in time and money."""

from __future__ import annotations

import msgspec


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """`usd` is None where no price is configured."""

    seconds: float
    usd: float | None = None
