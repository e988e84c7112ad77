"""The machines that the product supports. Standard library only: it runs before anything else is
imported, also in an interpreter that is too old for the rest."""

import platform
import sys
from typing import NamedTuple

SUPPORTED = "Linux with glibc 2.28 or newer on x86-64 or arm64, and a 64-bit CPython 3.11 to 3.14"
OLDEST, NEWEST = (3, 11), (3, 14)
_OLDEST_GLIBC = (2, 28)
"""The oldest glibc that the packages of TVM and numpy are built for."""
_PROCESSORS = ("x86_64", "amd64", "aarch64", "arm64")
_SYSTEMS = {"Darwin": "macOS"}


class Machine(NamedTuple):
    """The relevant properties of a machine; `libc` is empty unless it is glibc."""

    system: str
    processor: str
    libc: str
    python: tuple[int, int]
    is_64_bit: bool
    libc_version: str = ""
    kind: str = "CPython"
    has_gil: bool = True


def this_machine() -> Machine:
    return Machine(
        system=platform.system(),
        processor=platform.machine(),
        libc=platform.libc_ver()[0],
        python=(sys.version_info[0], sys.version_info[1]),
        is_64_bit=sys.maxsize > 2**32,
        libc_version=platform.libc_ver()[1],
        kind=platform.python_implementation(),
        has_gil="free-threading" not in sys.version,
    )


def why_unsupported(machine: Machine) -> str:
    """Returns why the machine is not supported, and what is; '' if it is supported."""
    obstacle = _system_in_the_way(machine) or _python_in_the_way(machine)
    return f"{obstacle} is not supported. tunegate runs on {SUPPORTED}." if obstacle else ""


def _system_in_the_way(machine: Machine) -> str:
    if machine.system != "Linux":
        return _SYSTEMS.get(machine.system, machine.system) or "this system"
    if machine.processor.lower() not in _PROCESSORS:
        return f"the processor {machine.processor or 'of this machine'}"
    if machine.libc != "glibc":
        return "a Linux without glibc (musl, as in Alpine)"
    if _numbers(machine.libc_version) < _OLDEST_GLIBC:
        return f"glibc {machine.libc_version}"
    return ""


def _python_in_the_way(machine: Machine) -> str:
    if not machine.is_64_bit:
        return "a 32-bit Python"
    if machine.kind != "CPython" or not machine.has_gil:
        return "a CPython without the GIL" if machine.kind == "CPython" else machine.kind
    if not OLDEST <= machine.python <= NEWEST:
        return f"Python {machine.python[0]}.{machine.python[1]}"
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    """Returns the numbers of a version; an unknown one counts as new enough."""
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else _OLDEST_GLIBC
