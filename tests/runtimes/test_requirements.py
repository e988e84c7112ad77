from __future__ import annotations

from importlib.util import find_spec

import msgspec
import pytest

from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.runtimes import requirements as of_all
from tunegate.runtimes.requirements import require_installed
from tunegate.runtimes.runtime import Step
from tunegate.runtimes.tvm import health as requirements

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
UNCOMPILED = TargetConfig(name="plain", runtime="onnxruntime")
STEPS: tuple[Step, ...] = ("plan", "tune", "gate", "run")


def config(*targets: TargetConfig, ray: bool = False) -> Config:
    return Config(
        models=(ModelConfig(path="*.onnx"),),
        targets=targets,
        executor="ray" if ray else "local",
    )


def missing(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    monkeypatch.setattr(
        requirements, "find_spec", lambda name: None if name in modules else find_spec(name)
    )


@pytest.mark.parametrize("step", STEPS)
def test_what_is_installed_for_these_tests_is_enough(step: Step) -> None:
    require_installed(config(CPU, UNCOMPILED), step)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("module", ["tvm", "tvm_ffi", "xgboost"])
def test_without_the_compiler_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch, step: Step, module: str
) -> None:
    missing(monkeypatch, module)
    with pytest.raises(ConfigError, match=f"runtime: auto, and the module {module} is") as caught:
        require_installed(config(UNCOMPILED, CPU), step)
    assert "python -m pip install 'tunegate[tvm]', or write runtime: onnxruntime." in str(
        caught.value
    )
    require_installed(config(UNCOMPILED), step)
    require_installed(config(UNCOMPILED, CPU), step, {"plain"})


@pytest.mark.parametrize("distribution", requirements.PINNED)
def test_another_version_of_the_compiler_is_refused(
    monkeypatch: pytest.MonkeyPatch, distribution: str
) -> None:
    monkeypatch.setitem(requirements.PINNED, distribution, "9.9")
    with pytest.raises(ConfigError, match=rf"{distribution} is .*, and only 9\.9 works"):
        require_installed(config(CPU), "plan")


def test_without_a_linker_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    require_installed(config(CPU), "plan")
    require_installed(config(UNCOMPILED), "gate")
    with pytest.raises(EnvironmentUnfitError, match=r"none of g\+\+, gcc.* to link with"):
        require_installed(config(CPU), "gate")


def test_a_gpu_needs_its_management_library_and_a_toolkit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing(monkeypatch, "pynvml")
    require_installed(config(GPU), "plan")
    with pytest.raises(ConfigError, match=r"kind: cuda, and pynvml .*tunegate\[nvidia\]"):
        require_installed(config(GPU), "tune")
    missing(monkeypatch)
    monkeypatch.setattr(requirements, "cuda_variables", dict)
    with pytest.raises(ConfigError, match=r"no CUDA toolkit .*tunegate\[nvidia\]"):
        require_installed(config(GPU), "run")


@pytest.mark.parametrize("step", ["tune", "run"])
def test_a_cluster_needs_its_extra(monkeypatch: pytest.MonkeyPatch, step: Step) -> None:
    require_installed(config(CPU, ray=True), step)
    monkeypatch.setattr(of_all, "plugin_named", lambda group, name: None)
    require_installed(config(CPU, ray=True), "gate")
    with pytest.raises(ConfigError, match=r"executor ray is not installed\. .*tunegate\[ray\]"):
        require_installed(config(CPU, ray=True), step)


def test_a_runtime_that_runs_nothing_on_a_target_is_refused_there() -> None:
    gpu = msgspec.structs.replace(GPU, runtime="onnxruntime")
    with pytest.raises(ConfigError, match=r"target gpu: runtime onnxruntime is for CPUs\. Write"):
        require_installed(config(gpu), "plan")


def test_only_what_is_asked_for_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    missing(monkeypatch, "tvm")
    require_installed(config(CPU), "run", runtimes=["onnxruntime"])
