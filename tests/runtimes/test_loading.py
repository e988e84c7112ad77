"""What a measuring process runs, and what it does not need for that."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.programs import run_program
from tunegate.artifacts.inputs import Files, InputRule, Integers
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.runtimes import requirements as of_all
from tunegate.runtimes.loading import bound_inference, load, operators_ms, titled_artifact
from tunegate.runtimes.requirements import require_installed
from tunegate.runtimes.runtime import Inference, Step
from tunegate.runtimes.tvm import health as requirements
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor


def outputs(run: Inference) -> list[Any]:
    return cast("list[Any]", run())


def identity(into: Path, kind: int = TensorProto.FLOAT, runtime: str = "onnxruntime") -> Path:
    """An artifact that gives back what it gets."""
    node = helper.make_node("Identity", ["x"], ["y"], name="same")
    values = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in ("x", "y")]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), into / "model.onnx")
    dtype = str(helper.tensor_dtype_to_np_dtype(kind))
    ArtifactFile(
        runtime=runtime,
        file="model.onnx",
        inputs=(ArtifactTensor("x", (2, 3), dtype),),
        outputs=(ArtifactTensor("y", (2, 3), dtype),),
        threads=1,
    ).write(into)
    return into


@pytest.mark.parametrize(
    "kind",
    [
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.FLOAT16,
        TensorProto.INT64,
        TensorProto.UINT8,
        TensorProto.BOOL,
    ],
    ids=TensorProto.DataType.Name,
)
def test_inputs_of_every_usual_type_are_made_up(tmp_path: Path, kind: int) -> None:
    (made,) = outputs(bound_inference(identity(tmp_path, kind), seed=1))
    assert made.dtype == helper.tensor_dtype_to_np_dtype(kind)
    assert made.shape == (2, 3)


def test_the_rules_of_both_sides_take_the_place_of_the_artifacts_own(tmp_path: Path) -> None:
    artifact = identity(tmp_path, TensorProto.INT64)
    inputs = (ArtifactTensor("x", (2, 3), "int64", InputRule(Integers(7, 7))),)
    (made,) = outputs(bound_inference(artifact, 1, inputs))
    assert {*made.ravel().tolist()} == {7}


def test_the_case_that_is_asked_for_is_run(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.npy") for number in range(3)]
    for number, file in enumerate(files):
        np.save(file, np.full((2, 3), number, np.float32))
    inputs = (ArtifactTensor("x", (2, 3), "float32", InputRule(Files(tuple(files), ("",) * 3))),)
    artifact = identity(tmp_path)
    made = [outputs(bound_inference(artifact, 1, inputs, case))[0].max() for case in range(4)]
    assert made == [0, 1, 2, 0]


def test_the_seed_decides_the_inputs(tmp_path: Path) -> None:
    artifact = identity(tmp_path)
    first, again, other = (outputs(bound_inference(artifact, seed))[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert not (first == other).all()


def test_an_artifact_gives_what_its_model_gives_and_the_times_of_its_operators(
    tmp_path: Path,
) -> None:
    artifact = identity(tmp_path)
    feed = {"x": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}
    (output,) = load(str(artifact)).run(feed)
    assert output.tolist() == feed["x"]
    assert list(operators_ms(artifact, 2, seed=1)) == ["same"]


def test_an_artifact_of_a_runtime_that_is_not_installed_is_told_as_that(tmp_path: Path) -> None:
    artifact = identity(tmp_path, runtime="absent")
    with pytest.raises(
        ConfigError, match=r"absent is not installed\. Installed: .*onnxruntime, .*tvm"
    ):
        bound_inference(artifact, seed=1)
    with pytest.raises(ConfigError, match="absent"):
        titled_artifact(artifact)


def test_a_launch_under_onnxruntime_starts_without_what_is_slow_to_import(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import tunegate.runtimes.bench_worker;"
        "from tunegate.runtimes.loading import bound_inference;"
        "bound_inference(Path(sys.argv[1]), 1)(); print(*sys.modules)"
    )
    done = run_program([sys.executable, "-c", program, str(identity(tmp_path))], check=True)
    slow = {"onnx", "scipy", "tvm", "tvm_ffi", "boto3", "git", "importlib.metadata"}
    assert not slow & set(done.stdout.split())


CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
UNCOMPILED = TargetConfig(name="plain", runtime="onnxruntime")
STEPS: tuple[Step, ...] = ("plan", "tune", "gate", "run")


def config(*targets: TargetConfig, ray: bool = False) -> Config:
    return Config(
        models=(ModelConfig(path="*.onnx"),), targets=targets, executor="ray" if ray else "local"
    )


def missing(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    monkeypatch.setattr(
        requirements, "find_spec", lambda name: None if name in modules else find_spec(name)
    )


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


def test_a_gpu_needs_its_management_library_and_a_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
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
