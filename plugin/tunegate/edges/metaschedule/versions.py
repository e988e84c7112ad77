"""Which compiler this is, as records name it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from tunegate_cache.format.records import Toolchain


def toolchain() -> Toolchain:
    """Read from the installed distributions; nothing is imported."""
    return Toolchain(
        tvm=_version("apache-tvm"), ffi=_version("apache-tvm-ffi"), cuda=_version("cuda-bindings")
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
