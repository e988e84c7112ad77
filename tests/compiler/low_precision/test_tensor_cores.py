"""Products on tensor cores: what the kernels compute is what float32 is, to the rounding of their
operands, and NVRTC takes their text. A stand-in for a device computes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.compiler.low_precision import product_kernels
from tests.compiler.low_precision.tensor_core_kernels import Lowered, compiled, convolution, lowered
from tests.cuda_stand_in.fixtures import WhatCuda
from tests.cuda_stand_in.programs import given_by
from tunegate.artifacts.candidates import FLOAT16, TFLOAT32
from tunegate.compiler.cuda_text import change_texts, machine_code, without_library_headers
from tunegate.compiler.low_precision import tensor_cores
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.tune.gpu_analysis import card_of

CARD = card_of("sm_90")


CASES: dict[str, Callable[[], product_kernels.Fused]] = {
    "matrices": lambda: product_kernels.matrices((2, 64), 128, 64),
    "odd matrices": lambda: product_kernels.matrices((50,), 71, 37),
    "scores": lambda: product_kernels.activations((1, 3), 40, 32, 48),
    "odd scores": lambda: product_kernels.activations((2,), 17, 33, 31),
    "window": lambda: convolution((1, 20, 14, 14), (24, 20, 3, 3), padding=1, strides=2),
    "pixel": lambda: convolution((2, 32, 8, 8), (64, 32, 1, 1)),
    "odd window": lambda: convolution(
        (2, 17, 9, 11), (19, 17, 3, 2), padding=(1, 0), dilation=(2, 1)
    ),
}
"""Kernels as a model for a GPU has them: images have their channels first."""


def largest_errors(precision: str) -> dict[str, list[float]]:
    """The error of each case by each tile, in parts of the largest number."""
    change_texts()
    device, found, every = tvm.cuda(), {}, tensor_cores.TILES[precision]
    for case, make in CASES.items():
        kernel = make()
        found[case] = [
            _error(kernel, lowered(kernel, tiles), device)
            for tiles in (every if case == "odd window" else every[:1])
        ]
    return found


def _error(kernel: product_kernels.Fused, lower: Lowered, device: Any) -> float:
    free = [
        each
        for n, each in enumerate(lower.arguments)
        if not kernel.arguments or not isinstance(kernel.arguments[n], tvm.ir.GenericConst)
    ]
    expected = kernel.computed(*free)
    into = tvm.runtime.tensor(np.full_like(expected, np.nan), device)
    tensors = [tvm.runtime.tensor(each, device) for each in lower.packed_arguments()]
    compiled(lower, "sm_90")["main"](*tensors, into)
    return float(np.abs(into.numpy() - expected).max() / np.abs(expected).max())


PRECISIONS = pytest.mark.parametrize("precision", [*tensor_cores.FACTORS])


@PRECISIONS
@pytest.mark.cuda_stand_in
@pytest.mark.timeout(900)
def test_kernels_compute_what_float32_does_but_for_rounding(
    cuda_stand_in: WhatCuda, precision: str
) -> None:
    """Among the cases are sizes that no tile divides, a stride, a border, a dilation, and all
    tiles; NaN stays where nothing was written."""
    found = given_by(cuda_stand_in(), __name__, f"largest_errors({precision!r})")
    assert [*found] == [*CASES]
    assert all(1e-6 < error < 2e-3 for errors in found.values() for error in errors), found


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize(
    ("arch", "precision"),
    [("sm_75", FLOAT16), ("sm_80", FLOAT16), ("sm_80", TFLOAT32), ("sm_90", TFLOAT32)],
)
def test_nvrtc_compiles_their_text(arch: str, precision: str) -> None:
    tiles = tensor_cores.TILES[precision][-1]
    (source,) = compiled(lowered(CASES["window"](), tiles), arch).imports
    text = without_library_headers(source.inspect_source())
    assert text is not None
    assert "wmma::mma_sync" in text
    assert ("precision::tf32" in text) == (precision == TFLOAT32)
    with tvm_target(TargetConfig(name="gpu", kind="cuda", arch=arch)).target:
        assert machine_code(text) is not None


@pytest.mark.parametrize(
    ("kernel", "measured_ms", "tile"),
    [
        (lambda: product_kernels.matrices((4096,), 1024, 4096), None, (64, 128)),
        (lambda: product_kernels.matrices((64,), 1024, 64), 1.0, (32, 32)),
        (lambda: product_kernels.matrices((64,), 1024, 64), 0.001, None),
        (lambda: product_kernels.matrices((8,), 512, 512), None, None),
        (lambda: convolution((1, 16, 8, 8), (16, 1, 3, 3), groups=16), None, None),
        (lambda: product_kernels.fused_kernel((64, 64), relax.op.exp), None, None),
    ],
    ids=["large", "small", "fast already", "few rows", "depthwise", "no product"],
)
def test_what_tensor_cores_make_faster_gets_tiles_of_its_size(
    kernel: Callable[[], product_kernels.Fused],
    measured_ms: float | None,
    tile: tuple[int, int] | None,
) -> None:
    product = tensor_cores.matrix_product(kernel().function)
    found = None
    if product is not None:
        tiles = tensor_cores.best_tiles(product, CARD, FLOAT16)
        if tensor_cores.is_faster(product, tiles, CARD, measured_ms):
            found = tiles.rows, tiles.columns
    assert found == tile
