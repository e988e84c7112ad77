"""The right device, idle, and ours."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import CUPTI, Simulate, gpu
from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.system.machine.device_lock import held_device
from tunegate.system.nvidia import session

WAITS = """
import sys
from tunegate.config import TargetConfig
from tunegate.system.nvidia.session import gpus_of, prepare_devices
target = TargetConfig(name="gpu", kind="cuda", device_wait_seconds=float(sys.argv[1]))
with prepare_devices(gpus_of(target), target):
    print("measures", flush=True)
"""


def target(**more: object) -> TargetConfig:
    facts = {"name": "gpu", "kind": "cuda", "device_wait_seconds": 0.0, **more}
    return TargetConfig(**facts)  # type: ignore[arg-type]  # a test names what it is about


@pytest.fixture(autouse=True)
def lock_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("TUNEGATE_LOCK_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected", "is_it"),
    [
        ("NVIDIA L4", "L4", True),
        ("NVIDIA L40S", "L4", False),
        ("NVIDIA A100-SXM4-80GB", "A100", True),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb", True),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-80GB", False),
        ("Tesla T4", "T4", True),
        ("NVIDIA H100 80GB HBM3", "H100 80GB", True),
        ("NVIDIA GH200 480GB", "H200", False),
    ],
)
def test_a_device_is_expected_by_whole_words(name: str, expected: str, is_it: bool) -> None:
    assert session.is_expected(name, expected) is is_it


def test_a_machine_without_a_device_is_unfit() -> None:
    with pytest.raises(EnvironmentUnfitError, match="target gpu: no CUDA device is visible"):
        session.gpus_of(target())


def test_another_device_than_the_expected_one_is_refused(simulate: Simulate) -> None:
    simulate(gpu("GPU-a", name="NVIDIA L40S"))
    with pytest.raises(EnvironmentUnfitError, match=r"expect-gpu is L4, .* NVIDIA L40S \(GPU-a\)"):
        session.gpus_of(target(expect_gpu="L4"))
    assert session.gpus_of(target(expect_gpu="L40S"))[0].gpu.uuid == "GPU-a"


def test_clocks_are_locked_only_where_it_is_asked_for(simulate: Simulate) -> None:
    machine = simulate(gpu("GPU-a"))
    with session.prepare_devices(session.gpus_of(target()), target()) as found:
        assert "locked" not in machine[0]
        assert found == ("floating", ())
    asked = target(lock_clocks_mhz=1400)
    with session.prepare_devices(session.gpus_of(asked), asked) as found:
        assert machine[0]["locked"] == [1400, 1400]
        assert found == ("locked", ())
    assert "locked" not in machine[0]


def test_where_clocks_may_not_be_locked_the_report_says_so(simulate: Simulate) -> None:
    simulate(gpu("GPU-a", may_lock=False))
    asked = target(lock_clocks_mhz=1400)
    with session.prepare_devices(session.gpus_of(asked), asked) as found:
        assert found.clocks == "floating"
        assert found.notes == ("NVIDIA L4: its clocks may not be locked here; they float",)


def test_a_busy_device_is_not_measured_on(simulate: Simulate) -> None:
    simulate(gpu("GPU-a", processes=[7], busy=40))
    with (
        pytest.raises(EnvironmentUnfitError, match="something else still runs"),
        session.prepare_devices(session.gpus_of(target()), target()),
    ):
        pass


def test_a_run_waits_while_another_measures_and_then_goes_on(simulate: Simulate) -> None:
    simulate(gpu("GPU-a"))
    with held_device(session.gpus_of(target())[0].claim):
        patient, hasty = (
            subprocess.Popen(
                [sys.executable, "-c", WAITS, seconds],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for seconds in ("60", "0.1")
        )
        _, said = hasty.communicate(timeout=60)
        assert "has had this device for more than 0.1 s" in said
        assert patient.poll() is None
    assert patient.communicate(timeout=60)[0] == "measures\n"


def test_a_device_whose_kernels_can_be_timed_is_kept_for_the_whole_run(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(gpu("GPU-a"), gpu("GPU-b"))
    gpus = session.gpus_of(target())
    with session.held_together(gpus) as are_held, held_device(gpus[0].claim):
        assert not are_held  # the real library finds no driver here
    monkeypatch.syspath_prepend(str(CUPTI))
    with session.held_together(gpus) as are_held:
        assert are_held
        for each in gpus:
            with pytest.raises(EnvironmentUnfitError, match=each.gpu.uuid), held_device(each.claim):
                pass
    with held_device(gpus[0].claim), held_device(gpus[1].claim):
        pass


def test_a_device_that_the_driver_forgot_is_named_with_its_error(simulate: Simulate) -> None:
    machine = simulate(gpu("GPU-one"), gpu("GPU-two"))
    gpus = [each.gpu for each in session.gpus_of(target())]
    assert session.loss_among(gpus, "while candidates ran", "a worker died") == ""
    machine.change(1, is_lost=True)
    lost = r"^NVIDIA L4 \(GPU-two\) was lost while candidates ran, .* Seen first: a worker died\."
    assert re.match(lost, session.loss_among(gpus, "while candidates ran", "a worker died."))


def test_a_loss_that_follows_from_another_is_told_once() -> None:
    first = session.loss_of("L4", "GPU-a", "while models were timed", "error 999.")
    then = session.loss_of("L4", "GPU-a", "while models were built", f"nothing ran: {first}")
    assert then == first.replace("timed", "built")
