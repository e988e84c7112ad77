"""Times of kernels as the device itself takes them: the only door to CUPTI.

CUDA's events, by which TVM times, also hold the slices of time that other processes had between
them; a kernel's own begin and end hardly do. So who times several candidates at once on one device
needs these. The module `cupti` comes from the distribution cupti-python; a host may forbid what it
asks for. Run as a program it says whether this one permits it, and why not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tunegate.errors import EnvironmentUnfitError
from tunegate.system.processes import interpreter

_BUFFER_BYTES = 8 * 1024 * 1024
_FORCED = 1
_PROBE_SECONDS = 60
_MAX_INFERENCES = 2000


class KernelClock:
    """Listens to the kernels of this process, of all its CUDA contexts."""

    def __init__(self, library: Any) -> None:
        """Raises what the library raises where there is no driver, or no permission."""
        self._library = library
        self._nanoseconds: list[int] = []
        library.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._take)
        library.activity_enable(library.ActivityKind.CONCURRENT_KERNEL)

    def repeat_ns(
        self, run: Callable[[], object], *, repeats: int, milliseconds: float
    ) -> tuple[int, ...]:
        """The nanoseconds of one inference, `repeats` times: each the mean over as many inferences
        as take the device `milliseconds`. `run` must not come back before the device is done.
        Raises EnvironmentUnfitError where kernels were missed."""
        once = self._listened(run, 1)
        count = max(1, min(_MAX_INFERENCES, math.ceil(milliseconds * 1e6 / once)))
        return tuple(round(self._listened(run, count)) for _ in range(repeats))

    def _listened(self, run: Callable[[], object], count: int) -> float:
        """Mean nanoseconds of one inference, one at least."""
        self._library.activity_flush_all(_FORCED)
        self._nanoseconds.clear()
        for _ in range(count):
            run()
        self._library.activity_flush_all(_FORCED)
        kernels = len(self._nanoseconds)
        if kernels == 0 or kernels % count:
            message = f"CUPTI told of {kernels} kernels in {count} inferences: some were missed"
            raise EnvironmentUnfitError(message)
        return max(1.0, sum(self._nanoseconds) / count)

    def _take(self, activities: list[Any]) -> None:
        kind = int(self._library.ActivityKind.CONCURRENT_KERNEL)
        self._nanoseconds += [each.end - each.start for each in activities if each.kind == kind]


def kernel_clock() -> KernelClock | None:
    """The clock of this process, from now on to its end, or None where there is no
    driver, no permission or no library."""
    found = _clock_or_reason()
    return None if isinstance(found, str) else found


def why_no_kernel_clock(variables: Mapping[str, str]) -> str:
    """Returns why this host does not give the times of kernels; '' where it does. Asked in a
    process of its own with these variables: this one need not load a CUDA driver for it."""
    asked = interpreter.ask(__name__, variables=variables, limit_seconds=_PROBE_SECONDS)
    if asked is None:
        return f"no answer in {_PROBE_SECONDS} s"
    if asked.returncode == 0:
        return ""
    said = asked.stdout.decode(errors="replace").strip()
    return said or f"exit code {asked.returncode}"


@cache
def _clock_or_reason() -> KernelClock | str:
    try:
        # An install extra, and a library that hooks into the CUDA driver of the process.
        from cupti import cupti  # noqa: PLC0415
    except ImportError as error:
        return f"{error}: pip install 'tunegate[nvidia]'"
    try:
        return KernelClock(cupti)
    except (cupti.cuptiError, RuntimeError) as error:
        return f"CUPTI refuses: {error}"


def main() -> None:
    found = _clock_or_reason()
    if isinstance(found, str):
        sys.stdout.write(found)
        sys.exit(1)


if __name__ == "__main__":
    main()
