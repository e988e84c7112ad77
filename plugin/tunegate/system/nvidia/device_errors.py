"""Errors of a CUDA device that stay: the process that has one can do nothing there any more."""

from __future__ import annotations

import re

_STAYING = re.compile(
    "illegalmemoryaccess|illegaladdress|illegalinstruction|misalignedaddress|launchfail"
    "|launchtimeout|launchtimedout|hardwarestackerror|invalidaddressspace|invalidpc"
    "|cudaerrorassert|cudaerrorunknown|devicesideassert|uncorrectable|contextisdestroyed"
    "|deviceunavailable"
)
"""Names of CUDA's two interfaces and their words, in small letters without anything between."""


def raise_lost_device(error: BaseException) -> None:
    """Raises the error where it is one that stays. Whoever catches all errors of a runtime lets it
    go on: his answer would come from a process whose destructors abort it."""
    text = re.sub(r"[\s_-]", "", str(error).lower())
    if "cuda" in text and _STAYING.search(text):
        raise error
