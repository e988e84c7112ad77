"""The only use of Ray, an install extra."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

from tunegate.errors import EnvironmentUnfitError

_ADDRESS = "RAY_ADDRESS"
_KNOCK_SECONDS, _NEAR_SECONDS = 10.0, 2.0


class Ray:
    """A connection to a running cluster: that of `RAY_ADDRESS`, or of this machine. Raises
    EnvironmentUnfitError if there is none."""

    def __init__(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray  # noqa: PLC0415
        except ImportError as error:
            message = (
                "executor: ray, but Ray is not installed. Run: "
                "python -m pip install 'tunegate[ray]'"
            )
            raise EnvironmentUnfitError(message) from error
        self._ray: Any = ray
        address = os.environ.get(_ADDRESS) or "auto"
        try:
            _knock(address)
            with contextlib.chdir("/"):  # its workers import from there
                self._ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            message = (
                f"executor: ray, but no cluster answers at {address} ({first_line(error)}). Start "
                f"one with: ray start --head, or set {_ADDRESS}."
            )
            raise EnvironmentUnfitError(message) from error
        self.errors: type[Exception] = ray.exceptions.RayError

    def resources(self) -> dict[str, float]:
        """Returns the resources of the whole cluster, as they are now."""
        return dict(self._ray.cluster_resources())

    def actor(self, kind: type[object], *arguments: object, cpus: float, gpus: float = 0) -> Any:
        """Starts another actor, which waits until there is room. It is not restarted when it
        dies."""
        remote = self._ray.remote(kind)
        return remote.options(num_cpus=cpus, num_gpus=gpus, max_restarts=0).remote(*arguments)

    def put(self, value: bytes) -> Any:
        return self._ray.put(value)

    def is_done(self, promise: Any) -> bool:
        """Returns whether the promise has ended, also by a failure."""
        done, _ = self._ray.wait([promise], timeout=0, fetch_local=False)
        return bool(done)

    def value(self, promise: Any) -> Any:
        """Waits for the promise. Raises one of `errors`, or what the actor raised."""
        return self._ray.get(promise)

    def first_of(self, promises: list[Any], seconds: float) -> Any | None:
        done, _ = self._ray.wait(promises, timeout=seconds)
        return done[0] if done else None

    def when_done(self, promise: Any, call: Callable[[], None]) -> None:
        """Calls back in another thread once the promise has ended or failed."""
        promise.future().add_done_callback(lambda _: call())

    def is_gone(self, node: str) -> bool:
        """Returns whether this machine has left the cluster. The cluster notices that late, and a
        worker that died with its machine looks like one that a candidate killed: so the machine is
        contacted."""
        for each in self._ray.nodes():
            if each["NodeID"] == node:
                address = (each["NodeManagerAddress"], each["NodeManagerPort"])
                return not (each["Alive"] and _answers(address))
        return True

    def kill(self, actor: Any) -> None:
        self._ray.kill(actor, no_restart=True)

    def close(self) -> None:
        self._ray.shutdown()


def _knock(address: str) -> None:
    """Connects once, as Ray itself waits five minutes for a missing cluster. Raises OSError."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()


def _answers(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=_NEAR_SECONDS).close()
    except OSError:
        return False
    return True


def first_line(error: Exception) -> str:
    """Returns the first line, short enough for our messages."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
