"""What has no schedule must run on a GPU, too."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te, topi

from tests.compiler.search.test_workload import product
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig


@pytest.fixture(scope="module")
def module() -> Any:
    return canonical_workload(product(64, 64, 64)).module


def test_on_a_cpu_sums_are_made_together_and_other_loops_stay_as_they_are(module: Any) -> None:
    target = tvm_target(TargetConfig(name="cpu")).target
    assert "vectorized" in str(with_default_schedule(module, target))
    x = te.placeholder((8, 64), "float32", "x")
    other = canonical_workload(te.create_prim_func([x, topi.nn.relu(x)])).module
    assert with_default_schedule(other, target) is other


def test_on_a_gpu_every_loop_nest_is_bound_to_threads(module: Any) -> None:
    target = tvm_target(TargetConfig(name="gpu", kind="cuda", arch="sm_80")).target
    scheduled = str(with_default_schedule(module, target))
    assert "threadIdx.x" not in str(module)
    assert "threadIdx.x" in scheduled
    assert "blockIdx.x" in scheduled
