"""An error of a device that stays is told from one of a single call."""

from __future__ import annotations

import pytest

from tunegate.system.nvidia.device_errors import raise_lost_device


@pytest.mark.parametrize(
    "words",
    [
        "CUDA Runtime Error: cudaErrorIllegalAddress (700): an illegal memory access",
        "CUDALaunch Error: CUDA_ERROR_ILLEGAL_ADDRESS\n grid=(1,1,1)",
        "CUDALaunch Error: CUDA_ERROR_LAUNCH_FAILED",
        "CUDA failure 719: unspecified launch failure ; GPU=0",
        "CUDA Runtime Error: cudaErrorMisalignedAddress (716): misaligned address",
        "CUDA error: device-side assert triggered",
        "CUDA Runtime Error: cudaErrorUnknown (999): unknown error",
        "CUDA Runtime Error: cudaErrorECCUncorrectable (214): uncorrectable ECC error",
    ],
)
def test_what_stays_goes_on(words: str) -> None:
    with pytest.raises(RuntimeError, match="CUDA"):
        raise_lost_device(RuntimeError(words))


@pytest.mark.parametrize(
    "words",
    [
        "CUDA Runtime Error: cudaErrorMemoryAllocation (2): out of memory",
        "CUDA Runtime Error: cudaErrorStreamCaptureImplicit (906): operation would make",
        "CUDALaunch Error: CUDA_ERROR_INVALID_VALUE",
        "shapes do not match",
        "illegal instruction in the model",
        "",
    ],
)
def test_another_error_is_for_who_caught_it(words: str) -> None:
    raise_lost_device(RuntimeError(words))
