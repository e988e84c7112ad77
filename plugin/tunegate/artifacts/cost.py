"""The price of work, in time, money and energy."""

from __future__ import annotations

from typing import Literal

import msgspec

EnergySource = Literal["rapl", "nvml", "rapl+nvml"]
"""The source of joules: counters of the processors, of the GPU, or of both."""


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """A cost; `usd` is None without a configured price, `joules` without a counter."""

    seconds: float
    usd: float | None = None
    joules: float | None = None
    energy_source: EnergySource | None = None
