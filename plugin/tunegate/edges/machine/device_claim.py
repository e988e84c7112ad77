"""A claim on a device: which one, and where its lock is."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on the device with this identity, by a run that can be found under `run`. Whoever
    gets a claim, in whatever process, can ask for the device with it."""

    uuid: str
    directory: str
    wait_seconds: float
    run: str = ""

    @property
    def path(self) -> Path:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.uuid)
        return Path(self.directory) / f"tunegate-{name}.lock"
