"""Keys that were ever written must be found again by every later version: `--update-golden` is for
a new digest with a new prefix, and for a compiler whose search space has changed."""

from __future__ import annotations

import json

from tvm.s_tir import meta_schedule as ms

from tests.support.golden import Golden
from tests.support.workload_corpus import primitive, workloads
from tunegate.config import TargetConfig
from tunegate.edges.metaschedule.intrinsics import load_intrinsics
from tunegate.edges.metaschedule.space import DesignSpace
from tunegate.edges.metaschedule.targets import tvm_target
from tunegate.edges.metaschedule.workload import canonical_workload

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


def test_target_keys_and_template_hashes_stay(golden: Golden) -> None:
    found: dict[str, object] = {}
    for target in TARGETS:
        load_intrinsics(target.kind)
        resolved = tvm_target(target)
        found[f"target {target.kind}"] = resolved.key
        for name, make in workloads().items():
            context = ms.TuneContext(
                mod=canonical_workload(primitive(make)).module,
                target=resolved.target,
                space_generator="post-order-apply",
                search_strategy="replay-trace",
                num_threads=1,
                rand_state=1,
            )
            space = DesignSpace(canonical_workload(primitive(make)), context)
            found[f"{name} {target.kind}"] = sorted(space.templates)
    golden.check("template_hashes.json", _lines(found))


def _lines(found: dict[str, object]) -> str:
    """One line for each name, so that a change shows what it touches."""
    rows = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"
