"""NVRTC itself compiles in some tests: it needs no device."""

from collections.abc import Iterator

import pytest
import tvm
import tvm_ffi

from tunegate.compiler import cuda_text
from tunegate.system.nvidia.cuda_toolkit import cuda_variables

CALLBACK = "tvm_callback_cuda_compile"


@pytest.fixture
def nvrtc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """NVRTC compiles, and texts are brief until the end of a test."""
    found = cuda_variables()
    if found.get("TVM_CUDA_COMPILE_MODE") != "nvrtc":
        pytest.skip("the headers of CUDA, or NVRTC, are missing")
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    before = tvm.get_global_func(CALLBACK)
    cuda_text.change_texts.cache_clear()
    cuda_text.change_texts()
    yield
    tvm_ffi.register_global_func(CALLBACK, before, override=True)
    cuda_text.change_texts.cache_clear()
