from __future__ import annotations

from tunegate.config import TargetConfig
from tunegate.runtimes.cuda_variants import cuda_variants

GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")


def test_the_usual_variant_is_float32_and_graphs_are_the_targets_choice() -> None:
    assert cuda_variants(GPU)[""] == {"launch": "graph"}
    without = TargetConfig(name="gpu", kind="cuda", arch="sm_90", cuda_graphs=False)
    assert cuda_variants(without)[""] == {}


def test_tf32_is_a_precision_of_its_own() -> None:
    found = cuda_variants(GPU, {"int8": {"precision": "int8"}})
    assert [each.get("precision") for each in found.values()] == [
        None,
        "tfloat32",
        "float16",
        "int8",
    ]
