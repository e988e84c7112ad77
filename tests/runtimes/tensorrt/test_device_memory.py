"""What CUDA's runtime says where there is no device."""

from __future__ import annotations

import pytest

from tunegate.errors import EnvironmentUnfitError
from tunegate.system.nvidia.gpus import visible_gpus

pytest.importorskip("cuda.bindings")


@pytest.mark.skipif(bool(visible_gpus()), reason="there is a CUDA device")
def test_without_a_device_memory_is_an_error_in_cudas_words() -> None:
    from tunegate.runtimes.tensorrt.engine import DeviceArray  # noqa: PLC0415

    with pytest.raises(EnvironmentUnfitError, match=r"^CUDA says: "):
        DeviceArray((2, 2), "float32")
