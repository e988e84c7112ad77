"""Processors and GPUs as one counter."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import gpu, simulated
from tests.system.test_rapl import use, zone
from tunegate.config import Config, ModelConfig
from tunegate.ports import EnergyReading
from tunegate.system.energy import energy_for, opened_energy


def test_where_processors_work_their_counter_is_enough(tmp_path: Path) -> None:
    at = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    with opened_energy(with_gpus=False, powercap=tmp_path) as energy:
        use(at, 4_000_000)
        assert energy.reading() == EnergyReading(3.0, "rapl")


def test_gpus_and_processors_are_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpus = simulated(monkeypatch, tmp_path, gpu("GPU-a", energy=1_000), gpu("GPU-b", energy=50_000))
    at = zone(tmp_path / "powercap", "intel-rapl:0", "package-0", 0)
    with opened_energy(with_gpus=True, powercap=tmp_path / "powercap") as energy:
        gpus.change(0, energy=3_500)
        gpus.change(1, energy=51_000)
        use(at, 4_000_000)
        assert energy.reading() == EnergyReading(7.5, "rapl+nvml")


def test_gpus_are_counted_without_the_processors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gpus = simulated(monkeypatch, tmp_path, gpu("GPU-a", energy=1_000))
    with opened_energy(with_gpus=True, powercap=tmp_path / "none") as energy:
        gpus.change(0, energy=3_000)
        assert energy.reading() == EnergyReading(2.0, "nvml")


@pytest.mark.parametrize("facts", [{}, {"energy": 1, "parts": [gpu("MIG-b")]}])
def test_processors_alone_say_nothing_of_work_on_gpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, facts: dict[str, object]
) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-a", **facts))
    zone(tmp_path / "powercap", "intel-rapl:0", "package-0", 0)
    with opened_energy(with_gpus=True, powercap=tmp_path / "powercap") as energy:
        assert energy.reading() is None


def test_without_a_driver_gpus_are_not_counted(tmp_path: Path) -> None:
    with opened_energy(with_gpus=True, powercap=tmp_path) as energy:
        assert energy.reading() is None


def test_machines_of_a_cluster_are_not_counted_here() -> None:
    models = (ModelConfig(path="*.onnx"),)
    with energy_for(Config(models=models, executor="ray")) as energy:
        assert energy.reading() is None
