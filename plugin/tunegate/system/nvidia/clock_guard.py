"""`python -m tunegate.system.nvidia.clock_guard UUID MHZ DIRECTORY`:
locks, and unlocks at the end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from tunegate.system.nvidia.clocks import lock, unlock


def main(uuid: str, mhz: int, directory: Path) -> int:
    """Locked until standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    note = lock(uuid, mhz, directory)
    sys.stdout.write("locked\n" if note else "not permitted\n")
    sys.stdout.flush()
    sys.stdin.read()
    if note is not None and unlock(uuid):
        note.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
