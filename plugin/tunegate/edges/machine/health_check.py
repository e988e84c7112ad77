"""One line of what `tunegate doctor` found."""

from __future__ import annotations

import msgspec


class HealthCheck(msgspec.Struct, frozen=True):
    """`detail` says what was found, or what is wrong and what to do."""

    name: str
    ok: bool
    detail: str
