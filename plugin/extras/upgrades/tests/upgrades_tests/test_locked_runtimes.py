"""Runtimes as lock files know them."""

from __future__ import annotations

from tunegate.config import TargetConfig
from tunegate_upgrades.locked_runtimes import locked_runtimes


def test_runtimes_are_known_by_the_packages_that_they_are() -> None:
    found = {each.name: each for each in locked_runtimes()}
    usual = found["onnxruntime"]
    assert (usual.packages, usual.compiles) == (("onnxruntime",), False)
    assert usual.runs(TargetConfig(name="cpu"))
    assert not usual.runs(TargetConfig(name="gpu", kind="cuda"))
    assert found["tvm"].compiles
    assert "apache-tvm" in found["tvm"].packages
