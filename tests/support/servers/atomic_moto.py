"""A server: moto's with writes that are atomic, as S3's are. Moto looks at a condition and then
writes, and another thread can come between. Run as `python atomic_moto.py -H HOST -p PORT`."""

import io
import threading
from collections.abc import Callable
from typing import Any

from moto import server
from moto.moto_server import werkzeug_app

_turn = threading.Lock()
_dispatch: Any = werkzeug_app.DomainDispatcherApplication.__call__


def _one_write_at_a_time(
    self: werkzeug_app.DomainDispatcherApplication,
    environ: dict[str, Any],
    start_response: Callable[..., Any],
) -> Any:  # noqa: ANN401 -- moto has no types
    """A slow sender is waited for before its turn, not in it."""
    if environ["REQUEST_METHOD"] not in {"PUT", "POST", "DELETE"}:
        return _dispatch(self, environ, start_response)
    length = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
    with _turn:
        return _dispatch(self, environ, start_response)


if __name__ == "__main__":
    setattr(werkzeug_app.DomainDispatcherApplication, "__call__", _one_write_at_a_time)  # noqa: B010
    server.main()
