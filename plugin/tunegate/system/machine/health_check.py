"""One line of what `tunegate doctor` found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

CheckPart = Literal["machine", "runtimes", "configuration", "cache", "models"]
"""The part of the check-up; parts that are fine are shown as a line each."""


class HealthCheck(msgspec.Struct, frozen=True):
    """`detail` says what was found, or what is wrong and what to do. What `warns` is in the way of
    no run, and makes it worse; what `is_absent` is not installed, and no run needs it."""

    name: str
    ok: bool
    detail: str
    section: CheckPart = "configuration"
    warns: bool = False
    is_absent: bool = False


def in_section(checks: Iterable[HealthCheck], section: CheckPart) -> tuple[HealthCheck, ...]:
    """The same checks, of that part."""
    return tuple(msgspec.structs.replace(each, section=section) for each in checks)
