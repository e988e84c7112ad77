"""What is asked of fresh processes: operators, the reference, and errors that say why."""

from __future__ import annotations

import venv
from pathlib import Path

import pytest

from tests.measure.onnx_artifact import artifact
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.inputs import ShapedModel
from tunegate.errors import MeasurementError
from tunegate.measure import bench_process as process
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.models.light_models import seeded_light
from tunegate.ports import ProbeThresholds
from tunegate.runtimes.builder import reference_builder

IMAGE = (1, 3, 224, 224)


def test_the_operators_of_an_artifact_are_timed_by_the_names_of_its_layers(tmp_path: Path) -> None:
    directory = artifact(tmp_path / "a", seeded_light("squeezenet", seed=1), IMAGE, "data_0")
    times = FreshProcesses(tmp_path, 1).operators_ms(directory)
    assert {"conv1", "fire5/expand3x3"} <= set(times)  # not r1 and r33, the fused activations
    assert all(milliseconds > 0 for milliseconds in times.values())


NEVER = ProbeThresholds(by_median=9.0, by_mean=9.0)


def test_an_artifact_that_does_not_run_says_why(tmp_path: Path, small: Path) -> None:
    broken = artifact(tmp_path / "broken", matmul_model(), (16, 16))
    (broken / "model.onnx").write_bytes(b"nonsense")
    with pytest.raises(MeasurementError, match=r"(?i)model|protobuf"):
        FreshProcesses(tmp_path / "scratch", 1).pair(small, broken).launch(4)


def test_a_process_that_hangs_is_given_up(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_MODULE", "tests.support.simulated.hanging_bench")
    with pytest.raises(MeasurementError, match="no answer in 1 s"):
        FreshProcesses(tmp_path, 1, limit_seconds=1.0).pair(small, small).launch(4)


def test_an_artifact_may_be_named_from_where_the_command_is(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small.parent)
    assert FreshProcesses(tmp_path, 1).single_ms(Path(small.name)) > 0


def test_the_reference_is_measured_from_the_onnx_file(
    tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that measures works in another directory than this one."""
    monkeypatch.chdir(tmp_path)
    bench = FreshProcesses(Path("scratch"), 1, reference=reference_builder)
    milliseconds = bench.reference_ms(ShapedModel(small / "model.onnx", {}), threads=1)
    assert 0 < milliseconds < 1000


def test_an_artifact_runs_with_the_packages_of_its_environment_and_our_own_code(
    tmp_path: Path, small: Path
) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    (place,) = tmp_path.glob("env/lib/*/site-packages")
    (place / "onnxruntime.py").write_text("raise ImportError('of the environment')")
    for ours in ("tunegate", "tunegate_cache", "msgspec"):
        (place / f"{ours}.py").write_text("raise ImportError('code of ours was taken from it')")
    pythons = {small: tmp_path / "env" / "bin" / "python"}
    with pytest.raises(MeasurementError, match="of the environment"):
        FreshProcesses(tmp_path / "scratch", 1, pythons=pythons).single_ms(small)
