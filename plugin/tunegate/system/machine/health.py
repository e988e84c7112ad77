"""A line of `tunegate doctor`, and what it says of the installed packages."""

import os
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

CheckPart = Literal["machine", "runtimes", "configuration", "cache", "models"]
"""The section of the check-up; sections that are fine are shown as one line each."""


class HealthCheck(msgspec.Struct, frozen=True):
    """`detail` says what was found, or what is wrong and what to do. A check that `warns` stops no
    run, but makes it worse; what `is_absent` is not installed, and no run needs it."""

    name: str
    ok: bool
    detail: str
    section: CheckPart = "configuration"
    warns: bool = False
    is_absent: bool = False


def in_section(checks: Iterable[HealthCheck], section: CheckPart) -> tuple[HealthCheck, ...]:
    """Returns the checks, moved to that section."""
    return tuple(msgspec.structs.replace(check, section=section) for check in checks)


def installed_version(distribution: str) -> str:
    """Returns the version from the installed metadata without an import, '' if it is not
    installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


# Checks that Python can keep the byte code of the packages that each process of a run imports. If
# it may not, as in many containers, each of dozens of processes compiles all of their modules
# again: importing the compiler takes 4.5 s instead of 2.4 on a core of an AMD EPYC.

_NEVER = "PYTHONDONTWRITEBYTECODE"


def bytecode_check(package: str, variables: Mapping[str, str] = os.environ) -> HealthCheck | None:
    """Returns a warning if every process compiles the package again, None if it is not
    installed."""
    spec = find_spec(package)
    if spec is None or not spec.origin:
        return None
    place = Path(spec.origin).parent
    bytecode = (
        place / "__pycache__" / f"{Path(spec.origin).stem}.{sys.implementation.cache_tag}.pyc"
    )
    if bytecode.is_file():
        return HealthCheck("bytecode", ok=True, detail=f"kept for {package}")
    if not variables.get(_NEVER) and os.access(place, os.W_OK):
        return HealthCheck("bytecode", ok=True, detail=f"kept once {package} is imported")
    advice = f"every process compiles {package} anew, for seconds. Run: python -m compileall -q"
    return HealthCheck("bytecode", ok=True, detail=f"{advice} {place}", warns=True)
