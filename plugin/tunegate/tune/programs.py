"""Programs of a compiler that the engine starts: it knows their protocol, never their insides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

SHARED_MEMORY = "TUNEGATE_SHARED_MEMORY_BYTES"
"""The variable that tells a child how much shared memory a block of a kernel may use."""
USUAL_SHARED_MEMORY = 48 * 1024
"""What every card has."""


class Programs(NamedTuple):
    """The modules of a compiler that run as child processes. `searcher` answers the requests of a
    search in `tune/protocol.py`, `worker` builds and times a `Measure`. `gpu_variables` returns the
    variables of children that choose kernels for the first visible GPU."""

    searcher: str
    worker: str
    gpu_variables: Callable[[], Mapping[str, str]]
