"""Times of kernels as the device itself takes them: the only use of CUPTI.

CUDA events, which TVM uses, include the time slices of other processes between them; a kernel's own
start and end hardly do. So timing several candidates at once on one device needs these. The module
`cupti` comes from the distribution cupti-python; a host may forbid it. Run as a program, it reports
whether this host permits it, and why not.
"""

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
_TRIES = 3
"""CUPTI may lose a buffer now and then. That must not end a run."""


class KernelClock:
    """Listens to the kernels of this process in all its CUDA contexts."""

    def __init__(self, library: Any) -> None:
        """Raises the library's error if there is no driver, or no permission."""
        self._library = library
        self._nanoseconds: list[int] = []
        library.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._take)
        library.activity_enable(library.ActivityKind.CONCURRENT_KERNEL)

    def repeat_ns(
        self, run: Callable[[], object], *, repeats: int, milliseconds: float
    ) -> tuple[int, ...]:
        """Returns the nanoseconds of one inference, `repeats` times: each is the mean over as many
        inferences as take the device `milliseconds`. `run` must not return before the device is
        done. Raises EnvironmentUnfitError if kernels were missed."""
        once = self._mean_ns(run, 1)
        count = max(1, min(_MAX_INFERENCES, math.ceil(milliseconds * 1e6 / once)))
        return tuple(round(self._mean_ns(run, count)) for _ in range(repeats))

    def _mean_ns(self, run: Callable[[], object], count: int) -> float:
        """Returns the mean nanoseconds of one inference, at least one. Measures again if kernels
        were missed."""
        kernels = 0
        for _ in range(_TRIES):
            self._library.activity_flush_all(_FORCED)
            self._nanoseconds.clear()
            for _ in range(count):
                run()
            self._library.activity_flush_all(_FORCED)
            kernels = len(self._nanoseconds)
            if kernels and not kernels % count:
                return max(1.0, sum(self._nanoseconds) / count)
        message = f"CUPTI told of {kernels} kernels in {count} inferences: some were missed"
        raise EnvironmentUnfitError(message)

    def _take(self, activities: list[Any]) -> None:
        kind = int(self._library.ActivityKind.CONCURRENT_KERNEL)
        self._nanoseconds += [
            activity.end - activity.start for activity in activities if activity.kind == kind
        ]


def kernel_clock() -> KernelClock | None:
    """Returns this process's clock, which runs until its end, or None without a driver, permission
    or library."""
    clock = _clock_or_reason()
    return None if isinstance(clock, str) else clock


def why_no_kernel_clock(variables: Mapping[str, str]) -> str:
    """Returns why this host does not give the times of kernels, '' if it does. Asks in a separate
    process with these variables: this one need not load a CUDA driver."""
    process = interpreter.ask(__name__, variables=variables, limit_seconds=_PROBE_SECONDS)
    if process is None:
        return f"no answer in {_PROBE_SECONDS} s"
    if process.returncode == 0:
        return ""
    output = process.stdout.decode(errors="replace").strip()
    return output or f"exit code {process.returncode}"


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
    clock = _clock_or_reason()
    if isinstance(clock, str):
        sys.stdout.write(clock)
        sys.exit(1)


if __name__ == "__main__":
    main()
