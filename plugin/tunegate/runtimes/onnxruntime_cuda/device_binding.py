"""Inputs and outputs that stay on a device, so that copies are no part of an inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tunegate.edges.reference.onnx_runtime import onnxruntime


class DeviceBinding:
    """The places of a session's inputs on a device. They stay the same for each feed: a CUDA graph
    reads where it was captured. Outputs of known sizes stay, too."""

    def __init__(self, session: Any, feed: Mapping[str, Any], device: str) -> None:
        self._session, self._device = session, device
        self._binding = session.io_binding()
        self._inputs: dict[str, Any] = {}
        for each in session.get_inputs():
            value = onnxruntime.OrtValue.ortvalue_from_numpy(_packed(feed[each.name]), device, 0)
            self._inputs[each.name] = value
            self._binding.bind_ortvalue_input(each.name, value)
        for each in session.get_outputs():
            self._binding.bind_output(each.name, device)

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns copies of the outputs."""
        self.bound(feed)()
        outputs: Sequence[Any] = self._binding.copy_outputs_to_cpu()
        return outputs

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Copies the feed, and returns one inference on it, until the device has ended it."""
        for name, place in self._inputs.items():
            place.update_inplace(_packed(feed[name]))
        session, binding = self._session, self._binding

        def inference() -> None:
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()

        return inference


def _packed(value: Any) -> Any:
    return np.ascontiguousarray(value)
