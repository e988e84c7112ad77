from __future__ import annotations

import pytest

from tunegate.config import TargetConfig
from tunegate.runtimes.registry import runtime_named
from tunegate_hybrid.runtime import RUNTIME


def test_it_runs_on_cpus_and_says_so_of_others() -> None:
    assert RUNTIME.unsupported(TargetConfig(name="cpu")) == ""
    gpu = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
    assert RUNTIME.unsupported(gpu) == "is for CPUs"
    assert dict(RUNTIME.variants(TargetConfig(name="cpu"))) == {"": {}}


@pytest.mark.parametrize("name", ["tvm", "onnxruntime"])
def test_its_versions_are_those_of_both(name: str) -> None:
    assert runtime_named(name).versions().items() <= RUNTIME.versions().items()
