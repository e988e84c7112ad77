"""A build for a GPU is measured on the right one, held against all others."""

import re
from pathlib import Path

import msgspec
import pytest

from tests.support.simulated.simulated_gpus import Simulate, gpu
from tests.system.test_energy import use, zone
from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError, MeasurementError
from tunegate.measure.bench_process import Devices
from tunegate.system.machine.device_lock import claim_on, held_device
from tunegate.system.output.artifact_file import ArtifactFile

TARGET = TargetConfig(name="gpu", kind="cuda", expect_gpu="L4", device_wait_seconds=0.1)


@pytest.fixture(autouse=True)
def _lock_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TUNEGATE_LOCK_DIR", str(tmp_path))


def artifact(directory: Path, device: str) -> Path:
    directory.mkdir()
    ArtifactFile(
        runtime="tvm",
        file="model.so",
        inputs=(),
        outputs=(),
        threads=1,
        device="cuda" if device == "cuda" else "cpu",
    ).write(directory)
    return directory


def test_a_build_for_the_cpu_needs_no_gpu(tmp_path: Path) -> None:
    with Devices(TARGET).of(artifact(tmp_path / "a", "cpu")) as device:
        assert "CUDA_VISIBLE_DEVICES" not in device.variables
        assert device.look() is None


def test_a_build_for_a_gpu_sees_one_held_device(simulate: Simulate, tmp_path: Path) -> None:
    simulate(gpu("GPU-a"), gpu("GPU-b"))
    base, head = artifact(tmp_path / "a", "cuda"), artifact(tmp_path / "b", "cuda")
    with Devices(TARGET).of(base, head) as device:
        assert device.variables["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with (
            pytest.raises(EnvironmentUnfitError, match="has had this device"),
            held_device(claim_on("GPU-a", wait_seconds=0)),
        ):
            pass
    with held_device(claim_on("GPU-a", wait_seconds=0)):
        pass


def test_clocks_are_locked_for_a_measurement_too(simulate: Simulate, tmp_path: Path) -> None:
    machine = simulate(gpu("GPU-a"))
    steady = msgspec.structs.replace(TARGET, lock_clocks_mhz=1200)
    with Devices(steady).of(artifact(tmp_path / "a", "cuda")):
        assert machine[0]["locked"] == [1200, 1200]
    assert "locked" not in machine[0]


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"name": "NVIDIA L40S"}, "expect-gpu is L4"),
        ({"processes": [7], "busy": 30}, "something else still runs"),
    ],
)
def test_a_device_that_will_not_do_breaks_the_measurement(
    simulate: Simulate, tmp_path: Path, facts: dict[str, object], reason: str
) -> None:
    simulate(gpu("GPU-a", **facts))
    with (
        pytest.raises(MeasurementError, match=reason),
        Devices(TARGET).of(artifact(tmp_path / "a", "cuda")),
    ):
        pass


def test_a_device_of_another_run_breaks_the_measurement(simulate: Simulate, tmp_path: Path) -> None:
    simulate(gpu("GPU-a"))
    with (
        held_device(claim_on("GPU-a", wait_seconds=0)),
        pytest.raises(MeasurementError, match=r"has had this device for more than 0\.1 s"),
        Devices(TARGET).of(artifact(tmp_path / "a", "cuda")),
    ):
        pass


def test_a_lost_device_is_named_and_not_asked_again(simulate: Simulate, tmp_path: Path) -> None:
    machine = simulate(gpu("GPU-a"))
    devices, build = Devices(TARGET), artifact(tmp_path / "a", "cuda")

    def break_down(error: str) -> None:
        machine.change(0, is_lost=True)
        raise MeasurementError(error)

    lost = r"^NVIDIA L4 \(GPU-a\) was lost while .* Seen first: error 999\. Run tunegate doctor"
    for error in ("error 999", "another one"):
        with pytest.raises(MeasurementError, match=lost), devices.of(build):
            break_down(error)


def test_an_error_of_a_device_is_told_with_its_name_and_another_one_as_it_is(
    simulate: Simulate, tmp_path: Path
) -> None:
    simulate(gpu("GPU-a"))
    devices, build = Devices(TARGET), artifact(tmp_path / "a", "cuda")
    illegal = "the measuring process failed (CUDA: cudaErrorIllegalAddress (700))"
    named = rf"^NVIDIA L4 \(GPU-a\) ended .*: {re.escape(illegal)}\. .* Run tunegate doctor"
    for error, told in ((illegal, named), ("no answer in 3 s", "^no answer in 3 s$")):
        with pytest.raises(MeasurementError, match=told), devices.of(build):
            raise MeasurementError(error)


def test_a_device_is_looked_at_as_it_is_now(simulate: Simulate, tmp_path: Path) -> None:
    machine = simulate(gpu("GPU-a"))
    with Devices(TARGET).of(artifact(tmp_path / "a", "cuda")) as device:
        machine.change(0, mhz=1200, reasons=0x4)
        state = device.look()
    assert state is not None
    assert (state.sm_mhz, state.throttled) == (1200, ("power cap",))


def test_the_energy_of_a_device_is_that_of_the_processors_and_of_the_gpu_that_is_measured(
    simulate: Simulate, tmp_path: Path
) -> None:
    at = zone(tmp_path / "powercap", "intel-rapl:0", "package-0", 0)
    gpus = simulate(gpu("GPU-a", energy=0), gpu("GPU-b", energy=0))
    devices = Devices(TARGET, tmp_path / "powercap")
    for kind, wanted in (("cuda", (5.0, "rapl+nvml")), ("cpu", (2.0, "rapl"))):
        with devices.of(artifact(tmp_path / kind, kind)) as device:
            before = device.energy.reading()
            use(at, 2_000_000)
            gpus.change(0, energy=3_000)
            gpus.change(1, energy=9_000)
            after = device.energy.reading()
        assert before is not None
        assert after is not None
        assert (after.joules - before.joules, after.source) == wanted
        use(at, 0)
