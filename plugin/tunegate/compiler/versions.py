"""The compiler's version, as records name it."""

from __future__ import annotations

from tunegate.system.machine.packages import installed_version
from tunegate_cache.format.records import Toolchain


def toolchain() -> Toolchain:
    """Returns the versions of the installed distributions; imports none of them."""
    return Toolchain(
        tvm=installed_version("apache-tvm"),
        ffi=installed_version("apache-tvm-ffi"),
        cuda=installed_version("cuda-bindings"),
    )
