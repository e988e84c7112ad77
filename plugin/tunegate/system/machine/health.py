"""A line of `tunegate doctor`. Each launch imports it, so it imports little."""

from collections.abc import Iterable
from typing import Literal

import msgspec

CheckPart = Literal["machine", "runtimes", "configuration", "cache", "models"]
"""The section of the check-up; sections that are fine are shown as one line each."""


class HealthCheck(msgspec.Struct, frozen=True):
    """`detail` says what was found, or what is wrong and what to do. A check that `warns` stops no
    run, but makes it worse; what `is_absent` is not installed, and no run needs it."""

    name: str
    ok: bool
    detail: str
    section: CheckPart = "configuration"
    warns: bool = False
    is_absent: bool = False


def in_section(checks: Iterable[HealthCheck], section: CheckPart) -> tuple[HealthCheck, ...]:
    """Returns the checks, moved to that section."""
    return tuple(msgspec.structs.replace(check, section=section) for check in checks)
