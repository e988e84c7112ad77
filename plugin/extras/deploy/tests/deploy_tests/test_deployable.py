from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ModelPin
from tunegate.artifacts.measurements import Gpu
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.errors import ConfigError
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_deploy.deployable import on_device_of, require_usable
from tunegate_deploy.model_sources.fetched_model import FetchedModel

CONFIG = Config(
    models=(ModelConfig(path="m.onnx"),),
    targets=(TargetConfig(name="cpu"), TargetConfig(name="t4", kind="cuda")),
)


def built_for_gpu(arch: str) -> ArtifactFile:
    return ArtifactFile(
        runtime="tvm",
        file="model.so",
        inputs=(),
        outputs=(),
        threads=1,
        device="cuda",
        target={"kind": "cuda", "arch": arch},
    )


def gpu(capability: str) -> Gpu:
    return Gpu(
        index=0, uuid="GPU-1", name="T4", compute_capability=capability, cores=1, memory_bytes=1,
        driver="1",
    )  # fmt: skip


def test_the_targets_of_the_artifacts_device_stay() -> None:
    kept = on_device_of(CONFIG, "oci://a/b", built_for_gpu("sm_75"), [gpu("7.5")])
    assert [target.name for target in kept.targets] == ["t4"]


def test_a_build_for_another_gpu_is_refused() -> None:
    with pytest.raises(ConfigError, match="built for sm_75, and the GPU here is sm_90"):
        on_device_of(CONFIG, "oci://a/b", built_for_gpu("sm_75"), [gpu("9.0")])


def test_a_build_for_another_kind_of_device_is_refused() -> None:
    only_cpu = Config(models=CONFIG.models, targets=CONFIG.targets[:1])
    with pytest.raises(ConfigError, match="built for cuda, which is not the device of cpu"):
        on_device_of(only_cpu, "oci://a/b", built_for_gpu("sm_75"))


def test_an_artifact_from_a_network_is_measured_only_where_it_is_trusted(tmp_path: Path) -> None:
    artifact = built_for_gpu("")
    artifact_io.write(tmp_path / "artifact.json", artifact)
    pin = ModelPin(address="oci://a/b:1", version="", sha256="")
    fetched = FetchedModel(tmp_path, pin, is_local=False)
    with pytest.raises(ConfigError, match="--trust-compiled"):
        require_usable(CONFIG, [fetched], trust_compiled=False)
    kept = require_usable(CONFIG, [fetched], trust_compiled=True)
    assert [target.name for target in kept.targets] == ["t4"]
