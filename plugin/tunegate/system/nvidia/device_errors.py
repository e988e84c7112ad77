"""CUDA errors that stay: after one, a process can do nothing more on the device."""

import re

_STAYING = re.compile(
    "illegalmemoryaccess|illegaladdress|illegalinstruction|misalignedaddress|launchfail"
    "|launchtimeout|launchtimedout|hardwarestackerror|invalidaddressspace|invalidpc"
    "|cudaerrorassert|cudaerrorunknown|devicesideassert|uncorrectable|contextisdestroyed"
    "|deviceunavailable"
)
"""Error names and messages of CUDA's two interfaces, in small letters, without separators."""


def raise_lost_device(error: BaseException) -> None:
    """Raises the error if it is one that stays. Code that catches all errors of a runtime must call
    this: the destructors of a process with such an error abort it."""
    text = re.sub(r"[\s_-]", "", str(error).lower())
    if "cuda" in text and _STAYING.search(text):
        raise error
