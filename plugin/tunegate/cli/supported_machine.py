"""Which machines the product runs on. Standard library only: it is asked before anything else is
imported, also by an interpreter that is too old for the rest."""

from __future__ import annotations

import platform
import sys
from typing import NamedTuple

SUPPORTED = "Linux with glibc on x86-64 or arm64, and a 64-bit Python 3.11 or newer"
OLDEST = (3, 11)
_PROCESSORS = ("x86_64", "amd64", "aarch64", "arm64")
_SYSTEMS = {"Darwin": "macOS"}


class Machine(NamedTuple):
    """What decides; `libc` is empty where it is not glibc."""

    system: str
    processor: str
    libc: str
    python: tuple[int, int]
    is_64_bit: bool


def this_machine() -> Machine:
    return Machine(
        system=platform.system(),
        processor=platform.machine(),
        libc=platform.libc_ver()[0],
        python=(sys.version_info[0], sys.version_info[1]),
        is_64_bit=sys.maxsize > 2**32,
    )


def why_unsupported(machine: Machine) -> str:
    """One line that says what is in the way and what is supported; empty where nothing is."""
    found = _in_the_way(machine)
    return f"{found} is not supported. tunegate runs on {SUPPORTED}." if found else ""


def _in_the_way(machine: Machine) -> str:
    if machine.system != "Linux":
        return _SYSTEMS.get(machine.system, machine.system) or "this system"
    if machine.processor.lower() not in _PROCESSORS:
        return f"the processor {machine.processor or 'of this machine'}"
    if machine.libc != "glibc":
        return "a Linux without glibc (musl, as in Alpine)"
    if not machine.is_64_bit:
        return "a 32-bit Python"
    if machine.python < OLDEST:
        return f"Python {machine.python[0]}.{machine.python[1]}"
    return ""
