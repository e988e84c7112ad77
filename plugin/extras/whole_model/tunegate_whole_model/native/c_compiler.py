"""The C compiler that a native artifact is linked with."""

from __future__ import annotations

import shutil

C_COMPILERS = ("gcc", "clang", "cc")
NO_C_COMPILER = (
    f"artifact: native is linked by a C compiler, and none of {', '.join(C_COMPILERS)} is on the "
    "PATH. Install one, or write artifact: runtime."
)


def c_compiler() -> str | None:
    """Returns the first C compiler on the PATH."""
    return next((found for name in C_COMPILERS if (found := shutil.which(name))), None)
