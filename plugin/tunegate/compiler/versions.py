"""The compiler's version, as records name it."""

from tunegate.system.machine.packages import installed_version
from tunegate_cache.format.records import Toolchain

DEFAULT_SCHEDULES = "5"
"""The revision of our own default schedules. Raise it with every change to what they make: records
must then win against them again (docs/how-caching-works.md). A test fails if it was forgotten."""


def toolchain() -> Toolchain:
    """Returns the versions of the installed distributions; imports none of them."""
    return Toolchain(
        tvm=installed_version("apache-tvm"),
        ffi=installed_version("apache-tvm-ffi"),
        cuda=installed_version("cuda-bindings"),
        schedules=DEFAULT_SCHEDULES,
    )
