"""The only door to NVML. The module `pynvml` comes from the distribution nvidia-ml-py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Value = TypeVar("Value")


@contextmanager
def nvml() -> Iterator[Any | None]:
    """The library between init and shutdown; None where there is no driver or no binding."""
    library = _initialized()
    try:
        yield library
    finally:
        if library is not None:
            library.nvmlShutdown()


def asked(library: Any, question: Callable[..., Value], *about: Any) -> Value | None:
    """The answer; None where this device, driver or permission has none."""
    try:
        return question(*about)
    except library.NVMLError:
        return None


def text(value: str | bytes) -> str:
    """Older bindings answer with bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _initialized() -> Any | None:
    try:
        # An install extra: most machines that run the gate have no NVIDIA device.
        import pynvml  # noqa: PLC0415
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
