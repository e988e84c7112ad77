"""The origin of a record: the machine, the compiler and the change that it was measured for."""

from __future__ import annotations

import msgspec

from tunegate_cache.format.records import DeviceFingerprint, Provenance, Toolchain


class RecordOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Goes on every record of a run: `device` and `toolchain` took its times, for `source`.
    `installed` is the digest of the versions that decide what runs: this product's and those of the
    runtimes, whatever else is installed beside them."""

    device: DeviceFingerprint
    toolchain: Toolchain
    source: Provenance
    installed: str = ""
