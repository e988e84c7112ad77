"""Bound inputs and outputs, on the CPU as the device."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.small_onnx import matmul_model, save
from tunegate.runtimes.onnxruntime.runtime import opened
from tunegate.runtimes.onnxruntime_cuda.model import DeviceBinding


def test_places_stay_and_each_feed_has_its_own_outputs(tmp_path: Path) -> None:
    session = opened(save(matmul_model(rows=4), tmp_path / "m.onnx"), 1)
    name = session.get_inputs()[0].name
    rng = np.random.default_rng(1)
    feeds = [{name: rng.random((16, 4), np.float32).T} for _ in range(2)]
    binding = DeviceBinding(session, feeds[0], "cpu")
    for feed in feeds:
        (found,) = binding.run(feed)
        np.testing.assert_array_equal(found, session.run(None, feed)[0])
    binding.bound(feeds[0])()
