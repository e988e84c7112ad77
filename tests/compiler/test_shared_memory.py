"""A schedule uses more than 48 KB of shared memory where a card has it, and the trial there showed
that it works. The cards are stand-ins."""

import json
import os
import sys
from typing import Any

import pytest

from tests.cuda_stand_in.environment import ILLEGAL_ADDRESS, lose_device
from tests.cuda_stand_in.fixtures import WhatCuda
from tests.support.programs import run_program

pytestmark = [pytest.mark.cuda_stand_in, pytest.mark.timeout(900)]

VARIABLES = """
import json
from tunegate.runtimes.tvm.runtime import gpu_variables
print(json.dumps(dict(gpu_variables())))
"""
TRIED = """
import json
from tunegate.runtimes.tvm.runtime import tried_kernel
from tunegate.system.nvidia.gpus import visible_gpus
print(json.dumps(tried_kernel(visible_gpus()[0])))
"""
WORKLOAD = """
import json, os, random
import numpy as np, tvm
from tvm import te
from tunegate.compiler.build.single_kernel import built_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.tune.gpu_analysis import SHARED_MEMORY
SIZE = 256
a, b = (te.placeholder((SIZE, SIZE), name=name) for name in "ab")
k = te.reduce_axis((0, SIZE), name="k")
c = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
product = canonical_workload(te.create_prim_func([a, b, c]))
target = tvm_target(TargetConfig(name="gpu", kind="cuda", arch="sm_90"))
load_intrinsics("cuda")
def space(more=None):
    os.environ.pop(SHARED_MEMORY, None)
    if more:
        os.environ[SHARED_MEMORY] = str(more)
    return DesignSpace(product, target.target)
"""
BOTH_CARDS = (
    WORKLOAD
    + """
small, large = space(), space(200 * 1024)
traces = large.sample(48, random.Random(3))
schedules = [large.describe(each.trace) for each in traces]
dynamic = [n for n, each in enumerate(traces) if "shared.dyn" in each.mod.script()]
alike = [n for n in range(len(traces)) if n not in dynamic]
texts = lambda space, n: space.replay(schedules[n]).mod.script()
found = {
    "templates": sorted(small.templates) == sorted(large.templates),
    "kinds": [len(dynamic) > 0, len(alike) > 0],
    "refused": [small.replay(schedules[n]) is None for n in dynamic],
    "served": [texts(small, n) == texts(large, n) for n in alike],
    "reproduced": [large.reproduces(each) for each in schedules],
}
given = [np.random.default_rng(n).random((SIZE, SIZE), dtype="float32") for n in range(2)]
tensors = [tvm.runtime.tensor(each, tvm.cuda()) for each in (*given, np.zeros_like(given[0]))]
built = built_kernel(traces[dynamic[0]].mod, target.target)
built.function["main"](*tensors)
found["right"] = bool(np.allclose(tensors[2].numpy(), given[0] @ given[1], rtol=1e-4))
print(json.dumps(found))
"""
)


def said_by(program: str, variables: dict[str, str]) -> Any:
    done = run_program([sys.executable, "-c", program], env=variables, code=0)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("card", "found"),
    [
        ({"shared_opt_in_kb": 99, "capability": 86}, {"TUNEGATE_SHARED_MEMORY_BYTES": "100352"}),
        ({"refuses_opt_in": 1}, {}),
        ({"capability": 75}, {}),
    ],
    ids=["99 KB", "a driver that refuses", "sm_75"],
)
def test_a_block_may_use_what_a_kernel_has_used_on_the_card(
    cuda_stand_in: WhatCuda, card: dict[str, object], found: dict[str, str]
) -> None:
    assert said_by(VARIABLES, cuda_stand_in(multiprocessors=1, memory_mb=64, **card)) == found


def test_a_kernel_that_does_not_run_gives_the_devices_error(cuda_stand_in: WhatCuda) -> None:
    variables = cuda_stand_in(multiprocessors=1, memory_mb=64, lost_after=10**9)
    assert said_by(TRIED, variables) == [226 * 1024, ""]
    lose_device(variables, ILLEGAL_ADDRESS)
    usable, failure = said_by(TRIED, variables)
    assert (usable, "cudaErrorIllegalAddress (700)" in failure) == (48 * 1024, True), failure


def test_without_a_device_nothing_is_tried() -> None:
    assert said_by(VARIABLES, dict(os.environ)) == {}


def test_records_of_a_small_card_serve_a_large_one_and_not_the_other_way(
    cuda_stand_in: WhatCuda,
) -> None:
    """Templates have the same digests on both; what fits into 48 KB stays the same kernel; what
    does not is refused by the small card, and right on the large one."""
    variables = cuda_stand_in(multiprocessors=2, memory_mb=64)
    found = said_by(BOTH_CARDS, {**variables, "TVM_CUDA_COMPILE_MODE": "nvrtc"})
    assert found["templates"]
    assert found["right"]
    assert found["kinds"] == [True, True]
    assert all(found["refused"] + found["served"] + found["reproduced"])
