from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import Simulate, gpu
from tunegate.config import Config, ModelConfig
from tunegate.ports import EnergyReading
from tunegate.system.energy import Rapl, counted_gpus, energy_for, opened_energy


@pytest.mark.parametrize("uuids", [["GPU-a", "GPU-old"], ["GPU-gone"], []])
def test_one_silent_device_makes_the_sum_unknown(simulate: Simulate, uuids: list[str]) -> None:
    simulate(gpu("GPU-a", energy=1_500), gpu("GPU-old"))
    with counted_gpus(uuids) as joules:
        assert joules() is None


# RAPL, over directories that look like /sys/class/powercap.


def zone(root: Path, name: str, says: str, microjoules: int, largest: int = 10**9) -> Path:
    at = root / name
    at.mkdir(parents=True)
    (at / "name").write_text(f"{says}\n")
    (at / "energy_uj").write_text(f"{microjoules}\n")
    (at / "max_energy_range_uj").write_text(f"{largest}\n")
    return at


def use(at: Path, microjoules: int) -> None:
    (at / "energy_uj").write_text(f"{microjoules}\n")


def test_all_packages_and_their_memory_are_added_and_nothing_twice(tmp_path: Path) -> None:
    added = [
        zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000),
        zone(tmp_path, "intel-rapl:1", "package-1", 7_000_000),
        zone(tmp_path, "intel-rapl:0:2", "dram", 0),
        zone(tmp_path, "intel-rapl:3", "package-2-die-1", 0),
    ]
    parts = [
        zone(tmp_path, "intel-rapl:0:0", "core", 0),
        zone(tmp_path, "intel-rapl:0:1", "uncore", 0),
        zone(tmp_path, "intel-rapl:2", "psys", 0),
        zone(tmp_path, "intel-rapl-mmio:0", "package-0", 0),
        zone(tmp_path, "dtpm", "package-0", 0),
    ]
    rapl = Rapl(tmp_path)
    for at in (*added, *parts):
        use(at, 9_000_000)
    assert rapl.joules() == pytest.approx(4 + 2 + 9 + 9)


def test_a_counter_begins_again_after_its_largest_value(tmp_path: Path) -> None:
    at = zone(tmp_path, "intel-rapl:0", "package-0", 90_000_000, largest=100_000_000)
    rapl = Rapl(tmp_path)
    use(at, 4_000_000)
    assert rapl.joules() == pytest.approx(14.0)
    use(at, 3_000_000)
    assert rapl.joules() == pytest.approx(113.0)
    use(at, 5_000_000)
    assert rapl.joules() == pytest.approx(115.0)


def test_a_counter_that_was_set_back_adds_no_more_than_it_shows(tmp_path: Path) -> None:
    at = zone(tmp_path, "intel-rapl:0", "package-0", 90_000_000, largest=1)
    rapl = Rapl(tmp_path)
    use(at, 2_000_000)
    assert rapl.joules() == pytest.approx(2.0)


def test_one_package_that_may_not_be_read_makes_the_sum_unknown(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", 0)
    other = zone(tmp_path, "intel-rapl:1", "package-1", 0)
    (other / "energy_uj").unlink()
    (other / "energy_uj").mkdir()
    assert Rapl(tmp_path).joules() is None


def test_a_counter_that_falls_silent_stays_silent(tmp_path: Path) -> None:
    at = zone(tmp_path, "intel-rapl:0", "package-0", 0)
    rapl = Rapl(tmp_path)
    use(at, 1_000_000)
    assert rapl.joules() == pytest.approx(1.0)
    (at / "energy_uj").write_text("not a number\n")
    assert rapl.joules() is None
    use(at, 2_000_000)
    assert rapl.joules() is None


def test_a_machine_without_packages_counts_nothing(tmp_path: Path) -> None:
    assert Rapl(tmp_path / "nowhere").joules() is None
    assert Rapl(tmp_path).joules() is None
    zone(tmp_path, "intel-rapl:0", "psys", 0)
    assert Rapl(tmp_path).joules() is None


# Processors and GPUs as one counter.


def test_where_processors_work_their_counter_is_enough(tmp_path: Path) -> None:
    at = zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    with opened_energy(with_gpus=False, powercap=tmp_path) as energy:
        use(at, 4_000_000)
        assert energy.reading() == EnergyReading(3.0, "rapl")


def test_gpus_and_processors_are_added(simulate: Simulate, tmp_path: Path) -> None:
    gpus = simulate(gpu("GPU-a", energy=1_000), gpu("GPU-b", energy=50_000))
    at = zone(tmp_path / "powercap", "intel-rapl:0", "package-0", 0)
    with opened_energy(with_gpus=True, powercap=tmp_path / "powercap") as energy:
        gpus.change(0, energy=3_500)
        gpus.change(1, energy=51_000)
        use(at, 4_000_000)
        assert energy.reading() == EnergyReading(7.5, "rapl+nvml")


def test_gpus_are_counted_without_the_processors(simulate: Simulate, tmp_path: Path) -> None:
    gpus = simulate(gpu("GPU-a", energy=1_000))
    with opened_energy(with_gpus=True, powercap=tmp_path / "none") as energy:
        gpus.change(0, energy=3_000)
        assert energy.reading() == EnergyReading(2.0, "nvml")


@pytest.mark.parametrize("facts", [{}, {"energy": 1, "parts": [gpu("MIG-b")]}])
def test_processors_alone_say_nothing_of_work_on_gpus(
    simulate: Simulate, tmp_path: Path, facts: dict[str, object]
) -> None:
    simulate(gpu("GPU-a", **facts))
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
