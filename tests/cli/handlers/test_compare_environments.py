"""What `tunegate compare --env` takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tunegate.cli.commands.comparing import CompareOptions
from tunegate.cli.handlers.compare import run
from tunegate.cli.handlers.compare_environments import (
    NoEnvironment,
    SideEnvironment,
    built_under,
    located,
)
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError
from tunegate.measure.bench_messages import Sides
from tunegate.ports import ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import runtime_named
from tunegate.system.environments.runtime_environment import RuntimeEnvironment

TWO = (Path("old"), Path("new"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (CompareOptions(base="m.onnx", environments=TWO[:1]), "give it twice"),
        (CompareOptions(base="m.onnx", head="n.onnx", environments=TWO), "one ONNX file"),
        (CompareOptions(base="m", environments=TWO, are_commands=True), "one ONNX file"),
        (CompareOptions(base="tvm:m.onnx", environments=TWO), "compiles the model"),
        (CompareOptions(base="m.onnx", environments=TWO), "no virtual environment"),
        (CompareOptions(base="m.onnx"), r"HEAD is missing\. See: tunegate"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    options: CompareOptions, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=problem):
        run(options)
    assert list(tmp_path.iterdir()) == []


# One artifact as two builds.


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
