"""Which candidates a target has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tunegate.config import TargetConfig
from tunegate.errors import ConfigError
from tunegate.models.prepared import PreparedModel
from tunegate.runtimes.openvino import runtime
from tunegate.runtimes.registry import Installed, extends, installed_runtimes, offered
from tunegate.runtimes.runtime import Loaded
from tunegate.system.output.artifact_file import ArtifactFile

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
ONNX_RUNTIME = ["onnxruntime", "onnxruntime-int8", "onnxruntime-int8.dynamic"]
TVM = ["tvm", "tvm-bf16", "tvm-int8.dynamic"]
OURS = [*TVM, *ONNX_RUNTIME]


@pytest.fixture(autouse=True)
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have installed them."""
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)


def of_the_core() -> Installed:
    """What is installed, without what extends it."""
    installed = installed_runtimes()
    return Installed(tuple(each for each in installed.runtimes if not extends(each)), ())


class Precisions:
    """Offers two ways, or fails where `variant` is wrong."""

    name, title = "precisions", "Precisions"

    def __init__(self, variant: str = "half") -> None:
        self._variant = variant

    def unsupported(self, target: TargetConfig) -> str:
        return "is for CPUs" if target.kind == "cuda" else ""

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {"": {}, self._variant: {"precision": "float16"}}

    def versions(self) -> Mapping[str, str]:
        return {}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        raise NotImplementedError

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        raise NotImplementedError


class Extending(Precisions):
    """Builds with the compiler of another."""

    name = "extending"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {"": {}}

    def extended(self) -> None:
        raise NotImplementedError


def with_another(runtime: Precisions) -> Installed:
    return Installed((*of_the_core().runtimes, runtime), ())


def named(target: TargetConfig, installed: Installed) -> list[str]:
    found = offered([target], installed).candidates[target.name]
    return [candidate.name for candidate in found]


def test_auto_is_all_that_run_on_the_target() -> None:
    assert named(CPU, of_the_core()) == OURS
    assert named(GPU, of_the_core())[0] == "tvm"


def test_each_variant_is_a_candidate_with_settings_and_a_title() -> None:
    found = offered([CPU], with_another(Precisions())).candidates["cpu"]
    assert [each.name for each in found] == [*OURS, "precisions", "precisions-half"]
    assert (found[-1].title, found[-1].settings) == ("Precisions (half)", {"precision": "float16"})
    assert [each.name for each in found if each.is_tuned] == TVM


def test_what_extends_the_compiler_has_its_tasks() -> None:
    installed = Installed((*of_the_core().runtimes, Extending()), ())
    found = offered([CPU, GPU], installed).candidates["cpu"]
    assert [each.name for each in found if each.is_tuned] == [*TVM, "extending"]
    assert [each.name for each in found if each.extends] == ["extending"]


@pytest.mark.parametrize("variant", ["a b", "../x", "Half", "-"])
def test_one_that_fails_at_this_is_left_out_and_told(variant: str) -> None:
    found = offered([CPU, CPU], with_another(Precisions(variant)))
    assert [each.name for each in found.candidates["cpu"]] == OURS
    (problem,) = found.problems
    assert problem.startswith("precisions is left out (ValueError: its variant ")


def test_a_target_may_name_one_and_so_may_a_command() -> None:
    one = TargetConfig(name="cpu", runtime="onnxruntime")
    assert named(one, installed_runtimes()) == ONNX_RUNTIME
    only = offered([CPU], installed_runtimes(), only=["onnxruntime"]).candidates["cpu"]
    assert [each.name for each in only] == ONNX_RUNTIME
    with pytest.raises(ConfigError, match="target gpu: runtime onnxruntime is for CPUs"):
        offered([GPU], installed_runtimes(), only=["onnxruntime"])


def test_a_runtime_that_is_not_installed_says_which_command_installs_it() -> None:
    with pytest.raises(ConfigError) as caught:
        offered([TargetConfig(name="cpu", runtime="openvino")], installed_runtimes())
    assert str(caught.value) == (
        "target cpu: runtime openvino needs openvino: pip install 'tunegate[openvino]'. "
        "Write runtime: auto."
    )


def test_a_native_artifact_is_written_by_what_compiles_alone() -> None:
    native = TargetConfig(name="cpu", artifact="native")
    assert {name.partition("-")[0] for name in named(native, of_the_core())} == {"tvm"}
    with pytest.raises(ConfigError, match="runtime onnxruntime writes no native artifact"):
        offered([native], installed_runtimes(), only=["onnxruntime"])
