"""A GPU: its identity, and its state at one moment."""

from __future__ import annotations

import msgspec


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One device that CUDA programs started here may use. `index` counts the devices of the machine
    by their place on the bus; `is_part` is one that is a part of it (MIG). Facts that a driver does
    not tell are None."""

    index: int
    uuid: str
    name: str
    compute_capability: str
    cores: int
    memory_bytes: int
    driver: str
    power_cap_watts: float | None = None
    max_sm_mhz: int | None = None
    is_part: bool = False
    ecc: bool | None = None


class GpuState(msgspec.Struct, frozen=True, kw_only=True):
    """A device at one moment. `throttled` names the reasons for which its clocks are lower than
    they could be, idleness aside; `busy_percent` is the share of the last moments in which
    something ran; `processes` are those with a CUDA context, as the driver numbers them."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    celsius: int | None = None
    watts: float | None = None
    used_bytes: int | None = None
    busy_percent: int | None = None
    throttled: tuple[str, ...] = ()
    processes: tuple[int, ...] = ()
