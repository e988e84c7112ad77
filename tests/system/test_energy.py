from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import gpu, simulated
from tunegate.system.energy import counted_gpus


def test_millijoules_of_all_devices_are_added(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-a", energy=1_500), gpu("GPU-b", energy=2_000))
    with counted_gpus(["GPU-a", "GPU-b"]) as joules:
        assert joules() == pytest.approx(3.5)


@pytest.mark.parametrize("uuids", [["GPU-a", "GPU-old"], ["GPU-gone"], []])
def test_one_device_that_does_not_count_makes_the_sum_unknown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uuids: list[str]
) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-a", energy=1_500), gpu("GPU-old"))
    with counted_gpus(uuids) as joules:
        assert joules() is None
