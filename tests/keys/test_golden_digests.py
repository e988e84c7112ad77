"""Keys that were ever written must be found again by every later version: `--update-golden` is for
a new digest with a new prefix, and for a compiler whose search space has changed."""

from __future__ import annotations

import json

import pytest

from tests.support.golden import Golden
from tests.support.models.workload_corpus import primitive, workloads
from tests.support.simulated.cuda_intrinsics import load_cuda_intrinsics
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.space import DesignSpace
from tunegate.compiler.search.workload import canonical_workload
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

TARGETS = (
    TargetConfig(name="cpu", kind="llvm", cpu="skylake-avx512", threads=2),
    TargetConfig(name="gpu", kind="cuda", arch="sm_90"),
)


def test_workload_and_skeleton_digests_of_the_corpus_stay(golden: Golden) -> None:
    found: dict[str, object] = {}
    for name, make in workloads().items():
        workload = canonical_workload(primitive(make))
        shape = workload.shape
        found[name] = [workload.digest, shape.skeleton, list(shape.extents)]
    golden.check("workload_digests.json", _lines(found))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.kind)
def test_target_keys_and_template_hashes_stay(golden: Golden, target: TargetConfig) -> None:
    load_cuda_intrinsics() if target.kind == "cuda" else load_intrinsics(target.kind)
    resolved = tvm_target(target)
    found: dict[str, object] = {"target": resolved.key}
    for name, make in workloads().items():
        workload = canonical_workload(primitive(make))
        found[name] = sorted(DesignSpace(workload, resolved.target).templates)
    golden.check(f"template_hashes_{target.kind}.json", _lines(found))


def _lines(found: dict[str, object]) -> str:
    """One line for each name, so that a change shows what it touches."""
    rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"
