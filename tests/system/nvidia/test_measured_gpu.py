from __future__ import annotations

from tunegate.artifacts.measurements import Gpu
from tunegate.system.machine.device_lock import Claim
from tunegate.system.nvidia.gpus import MeasuredGpu

GPU = Gpu(
    index=3,
    uuid="GPU-a",
    name="NVIDIA L4",
    compute_capability="8.9",
    cores=7424,
    memory_bytes=24 << 30,
    driver="550",
)


def test_a_process_sees_this_device_and_no_other_in_the_order_of_the_driver() -> None:
    claim = Claim(uuid="GPU-a", directory="/d", wait_seconds=1.0)
    assert MeasuredGpu(GPU, claim).variables == {
        "CUDA_VISIBLE_DEVICES": "GPU-a",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
