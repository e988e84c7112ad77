"""Which compiler this is, as records name it, and whether its parts fit together."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import tvm

from tunegate_cache.records import Toolchain


def toolchain() -> Toolchain:
    return Toolchain(
        tvm=tvm.__version__, ffi=_version("apache-tvm-ffi"), cuda=_version("cuda-bindings")
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
