"""One artifact as two builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tunegate.cli.handlers.compare_environments import (
    NoEnvironment,
    SideEnvironment,
    built_under,
    located,
)
from tunegate.config import TargetConfig
from tunegate.measure.bench_messages import Sides
from tunegate.ports import ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import runtime_named
from tunegate.system.environments.runtime_environment import RuntimeEnvironment


def environment(directory: Path, version: str) -> RuntimeEnvironment:
    return RuntimeEnvironment(
        directory=directory,
        python=directory / "bin" / "python",
        version=version,
        packages={"onnxruntime": version},
        others={},
    )


@pytest.mark.parametrize(
    ("others", "are_alike"), [(("a", "1"), True), (("b", "1"), False), (("a", "2"), False)]
)
def test_the_environment_decides_with_the_artifact(
    others: tuple[str, str], tmp_path: Path, *, are_alike: bool
) -> None:
    runtime = runtime_named("onnxruntime")
    save(conv_model(), tmp_path / "m.onnx")
    model = ModelJob(
        file=tmp_path / "m.onnx", path="m.onnx", shapes={}, target=TargetConfig(name="cpu")
    )
    directory, version = others
    sides: Sides[SideEnvironment] = Sides(
        environment(tmp_path / "a", "1"), environment(tmp_path / directory, version)
    )
    places = Sides(tmp_path / "out" / "base", tmp_path / "out" / "head")
    builder = SavingBuilder(runtime, tmp_path / "scratch", seed=1)
    base, head = built_under(runtime, model, places, sides, builder)
    assert base is not None
    assert head is not None
    assert (base.key == head.key) is are_alike
    assert head.title == f"ONNX Runtime {version}"
    found = located(head, tmp_path)
    assert found is not None
    assert found.directory == "out/head"
    assert (tmp_path / found.directory / "artifact.json").is_file()

    reason = NoEnvironment(reason="no such package", broken=True)
    base, head = built_under(runtime, model, places, Sides(None, reason), builder)
    assert base is None
    assert head is not None
    assert (head.error, head.crashed) == ("no such package", True)
