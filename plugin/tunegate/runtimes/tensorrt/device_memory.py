"""Memory and streams of the first visible GPU, by the bindings of CUDA's runtime.

They live as long as the process, which measures one artifact.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from cuda.bindings import runtime

from tunegate.errors import EnvironmentUnfitError


class DeviceArray:
    """A host array with its buffer on the device."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.host = np.zeros(shape, dtype)
        self.address = int(_checked_result(runtime.cudaMalloc(max(1, self.host.nbytes))))

    def upload(self, value: Any) -> None:
        self.host[...] = value
        to_device = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
        _checked_result(
            runtime.cudaMemcpy(self.address, self.host.ctypes.data, self.host.nbytes, to_device)
        )

    def download(self) -> Any:
        """Returns a copy of the device's buffer."""
        to_host = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
        _checked_result(
            runtime.cudaMemcpy(self.host.ctypes.data, self.address, self.host.nbytes, to_host)
        )
        return self.host.copy()


class Stream:
    """A stream: an order in which the device works."""

    def __init__(self) -> None:
        self._stream = _checked_result(runtime.cudaStreamCreate())

    @property
    def handle(self) -> int:
        return int(self._stream)

    def wait(self) -> None:
        _checked_result(runtime.cudaStreamSynchronize(self._stream))

    def capture(self, begin: Callable[[], None]) -> Callable[[], None]:
        """Captures what `begin` starts one by one, and returns a function that starts it all at
        once. Raises EnvironmentUnfitError if it cannot be captured."""
        mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        _checked_result(runtime.cudaStreamBeginCapture(self._stream, mode))
        try:
            begin()
        finally:
            result = runtime.cudaStreamEndCapture(self._stream)
        graph = _checked_result(runtime.cudaGraphInstantiate(_checked_result(result), 0))

        def launch() -> None:
            _checked_result(runtime.cudaGraphLaunch(graph, self._stream))

        return launch


def _checked_result(result: tuple[Any, ...]) -> Any:
    """Returns the result of a CUDA call. Raises EnvironmentUnfitError if it failed."""
    code, *values = result
    if code != runtime.cudaError_t.cudaSuccess:
        _, text = runtime.cudaGetErrorString(code)
        raise EnvironmentUnfitError(f"CUDA says: {text.decode(errors='replace')}")
    return values[0] if values else None
