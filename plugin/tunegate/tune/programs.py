"""Programs that the engine starts: it knows their protocol, never their insides."""

from __future__ import annotations

from typing import NamedTuple


class Programs(NamedTuple):
    """The modules of a compiler that run as child processes. `searcher` answers the requests of a
    search in `tune/protocol.py`, `worker` builds and times a `Measure`."""

    searcher: str
    worker: str
