"""Memory and streams of the first GPU that this process sees, by the bindings of CUDA's runtime.

All of it lives as long as the process, which measures one artifact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import runtime

from tunegate.errors import EnvironmentUnfitError


class DeviceArray:
    """An array of the host with its place on the device."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.host = np.zeros(shape, dtype)
        self.address = int(_done(runtime.cudaMalloc(max(1, self.host.nbytes))))

    def upload(self, value: Any) -> None:
        self.host[...] = value
        to_device = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
        _done(runtime.cudaMemcpy(self.address, self.host.ctypes.data, self.host.nbytes, to_device))

    def download(self) -> Any:
        """Returns a copy of what is on the device."""
        to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
        _done(runtime.cudaMemcpy(self.host.ctypes.data, self.address, self.host.nbytes, to_host))
        return self.host.copy()


class Stream:
    """An order in which the device does things."""

    def __init__(self) -> None:
        self._stream = _done(runtime.cudaStreamCreate())

    @property
    def handle(self) -> int:
        return int(self._stream)

    def wait(self) -> None:
        _done(runtime.cudaStreamSynchronize(self._stream))

    def captured(self, begin: Callable[[], None]) -> Callable[[], None]:
        """Returns what begins all at once that `begin` begins one by one. Raises
        EnvironmentUnfitError where that cannot be captured."""
        mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        _done(runtime.cudaStreamBeginCapture(self._stream, mode))
        try:
            begin()
        finally:
            ended = runtime.cudaStreamEndCapture(self._stream)
        graph = _done(runtime.cudaGraphInstantiate(_done(ended), 0))

        def launch() -> None:
            _done(runtime.cudaGraphLaunch(graph, self._stream))

        return launch


def _done(result: tuple[Any, ...]) -> Any:
    """Returns what a call gives. Raises EnvironmentUnfitError where it failed."""
    code, *found = result
    if code != runtime.cudaError_t.cudaSuccess:
        _, said = runtime.cudaGetErrorString(code)
        raise EnvironmentUnfitError(f"CUDA says: {said.decode(errors='replace')}")
    return found[0] if found else None
