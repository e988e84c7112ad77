"""Time that a process waited for a core: on a busy machine that is most of its time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

MOST_WAITED = 3.0
"""The waiting that a limit of time forgives, in limits: everything that waits has an end."""
_NANOSECONDS = 1e9


def waited_for_core(pid: int, proc: Path = Path("/proc")) -> float:
    """Returns the seconds that the thread which waited longest was ready and did not run, since it
    began. 0 of a process that is gone, and where the kernel does not count them."""
    waited = 0.0
    with suppress(OSError):
        for thread in (proc / str(pid) / "task").iterdir():
            with suppress(OSError, ValueError, IndexError):
                fields = (thread / "schedstat").read_text().split()
                waited = max(waited, int(fields[1]) / _NANOSECONDS)
    return waited


def is_time_up(elapsed: float, limit: float, waited: float) -> bool:
    """Returns whether `elapsed` seconds exceed the limit, without those in which the process
    `waited` for a core: one that sleeps or computes gets no longer by it."""
    return elapsed - min(max(0.0, waited), MOST_WAITED * limit) >= limit
