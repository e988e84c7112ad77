"""A function is built by itself and takes the arguments of its workload."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import te

from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig


def test_a_kernel_computes_into_its_last_argument() -> None:
    x = te.placeholder((4, 8), name="x")
    main = te.create_prim_func([x, te.compute((4, 8), lambda i, j: x[i, j] + 1.0)])
    target = tvm_target(TargetConfig(name="cpu", threads=1)).target
    kernel = built_kernel(tvm.IRModule({"main": main}), target)
    value = np.random.default_rng(1).standard_normal((4, 8)).astype("float32")
    given = [tvm.runtime.tensor(value), tvm.runtime.tensor(np.zeros_like(value))]
    kernel.function["main"](*kernel.arguments(given))
    np.testing.assert_allclose(given[-1].numpy(), value + 1)
