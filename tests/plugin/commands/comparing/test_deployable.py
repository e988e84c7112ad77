from __future__ import annotations

import pytest

from tunegate.artifacts.gpus import Gpu
from tunegate.commands.comparing.deployable import on_device_of
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.errors import ConfigError

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
