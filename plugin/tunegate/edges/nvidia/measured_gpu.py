"""A GPU that is measured on, and how to ask for it."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.gpus import Gpu
from tunegate.edges.machine.device_claim import Claim


class MeasuredGpu(msgspec.Struct, frozen=True):
    """A device, and what to hold while timing on it."""

    gpu: Gpu
    claim: Claim

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a process that is to see this device and no other."""
        return variables_for(self.gpu)


def variables_for(gpu: Gpu) -> dict[str, str]:
    """The same for a device that is not measured on."""
    return {"CUDA_VISIBLE_DEVICES": gpu.uuid, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
