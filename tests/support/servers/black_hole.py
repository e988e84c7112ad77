"""A server that takes every connection and never answers."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def black_hole() -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
