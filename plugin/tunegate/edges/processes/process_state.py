"""The kernel's view of a process, from one small file: it is read many times a second."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STATE, _RESIDENT_PAGES = 0, 21
"""Places behind the name of the program, which may hold anything."""


class ProcessState(NamedTuple):
    """`is_stopped`: by a signal, until another one lets it go on."""

    resident_bytes: int
    is_stopped: bool


def process_state(pid: int) -> ProcessState:
    """Returns the state of a process, empty for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return ProcessState(int(fields[_RESIDENT_PAGES]) * _PAGE_BYTES, fields[_STATE] == "T")
    except (OSError, IndexError, ValueError):
        return ProcessState(0, is_stopped=False)
