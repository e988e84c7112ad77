"""A TCP proxy on loopback that lets every request wait, as a network does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_CHUNK_BYTES = 256 * 1024


@contextmanager
def slow_proxy(url: str, *, seconds: float) -> Iterator[str]:
    """The proxy's URL. What a client sends waits `seconds` before it goes on to `url`; answers
    pass at once."""
    server = urlsplit(url)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    address = (str(server.hostname), int(server.port or 80))

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far = socket.create_connection(address)
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((client, far, seconds), (far, client, 0.0)):
                threading.Thread(target=_forward, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def _forward(source: socket.socket, destination: socket.socket, seconds: float) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            time.sleep(seconds)
            destination.sendall(data)
    for end in (source, destination):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
