"""Runtimes of other makers on a real GPU: built, checked, measured, taken apart into layers."""

from pathlib import Path

import pytest

from tests.support.models.transformer import transformer
from tests.support.small_onnx import conv_model, save
from tunegate.artifacts.builds import Build
from tunegate.artifacts.inputs import InputRule, KnownInputs, Uniform
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import runtime_named, saves

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
TARGET = TargetConfig(name="gpu", kind="cuda", device_wait_seconds=60.0)
NAMES = ("onnxruntime_cuda", "tensorrt")
LOWER = {"tf32": 0.02, "f16": 0.05, "int8": 0.2}
"""The most that a precision may be off, as a share of the largest output."""


def built(root: Path, name: str, variant: str, samples: int = 0) -> tuple[Build, Path]:
    runtime = runtime_named(name)
    assert saves(runtime)
    reason = runtime.unsupported(TARGET)
    if reason:
        pytest.skip(f"{name} {reason}")
    file = save(transformer(sequence=64) if not samples else conv_model(), root / "m.onnx")
    given = {"x": InputRule(Uniform(-1.0, 1.0))} if samples else {}
    job = BuildJob(
        model=ModelJob(
            file=file, path="m.onnx", shapes={}, target=TARGET, inputs=KnownInputs(given=given)
        ),
        records={},
        sources={},
        directory=root / "artifact",
        variant=variant,
        settings=dict(runtime.variants(TARGET)[variant]),
        samples=samples,
    )
    (build,) = SavingBuilder(runtime, root / "scratch", seed=1).build([job])
    assert build.error is None
    return build, job.directory


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_float32_whole_on_the_device_with_graphs(tmp_path: Path, name: str) -> None:
    build, directory = built(tmp_path, name, "")
    assert build.check is not None
    assert build.check.passed
    assert build.notes == ()
    bench = FreshProcesses(tmp_path / "bench", 1, TARGET)
    launch = bench.pair(directory, directory).launch(8)
    assert abs(launch.effect) < 0.1
    layers = bench.operators_ms(directory)
    assert sum(layers.values()) > 0
    assert any("MatMul" in each or "Gemm" in each for each in layers)


@pytest.mark.parametrize("variant", LOWER)
@pytest.mark.parametrize("name", NAMES)
def test_lower_precisions_are_off_by_what_they_should(
    tmp_path: Path, name: str, variant: str
) -> None:
    if variant not in runtime_named(name).variants(TARGET):
        pytest.skip(f"{name} has no {variant}")
    build, _ = built(tmp_path, name, variant, samples=8)
    assert build.sampled is not None
    assert max(build.sampled.relative) < LOWER[variant]
