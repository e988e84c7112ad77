"""CUDA errors that stay: after one, a process can do nothing more on the device. Each launch
imports this, so it imports little."""

import re

_STAYING = re.compile(
    "illegalmemoryaccess|illegaladdress|illegalinstruction|misalignedaddress|launchfail"
    "|launchtimeout|launchtimedout|hardwarestackerror|addressspace|invalidpc|invalidprogramcounter"
    "|cudaerrorassert|errorunknown|unknownerror|devicesideassert|uncorrectable|contextisdestroyed"
    "|deviceunavailable"
)
"""Error names and messages of CUDA's two interfaces, in small letters, without separators."""


def is_device_lost(message: str) -> bool:
    """Returns whether a message tells an error of CUDA's that stays."""
    text = re.sub(r"[\s_-]", "", message.lower())
    return "cuda" in text and _STAYING.search(text) is not None


def raise_lost_device(error: BaseException) -> None:
    """Raises the error if it is one that stays. Code that catches all errors of a runtime must call
    this: the destructors of a process with such an error abort it."""
    if is_device_lost(str(error)):
        raise error
