"""A machine with GPUs that are only said to be there; see simulated_nvml/pynvml.py."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tunegate.artifacts.measurements import Gpu

_BINDING = Path(__file__).parent / "simulated_nvml"
CUPTI = Path(__file__).parent / "simulated_cupti"
"""The folder that lets a process time kernels once it is on its path."""


def gpu(uuid: str, **more: object) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "name": "NVIDIA L4",
        "capability": [8, 9],
        "cores": 7424,
        "memory": 24 * 2**30,
        "power_cap": 72_000,
        "mhz": 2040,
        **more,
    }


L4 = Gpu(
    index=0,
    uuid="GPU-a",
    name="NVIDIA L4",
    compute_capability="8.9",
    cores=7424,
    memory_bytes=24 << 30,
    driver="570.1",
)


class SimulatedGpus:
    """The GPUs that every process that is started from here sees through NVML."""

    def __init__(self, file: Path, *gpus: dict[str, Any]) -> None:
        self._file = file
        file.write_text(json.dumps({"driver": "570.1", "gpus": list(gpus)}))

    def __getitem__(self, index: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._file.read_text())["gpus"][index]
        return found

    def change(self, index: int, **facts: object) -> None:
        state = json.loads(self._file.read_text())
        state["gpus"][index].update(facts)
        self._file.write_text(json.dumps(state))


Simulate = Callable[..., SimulatedGpus]


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Simulate:
    """Simulates the GPUs that it is called with, for this process and its children."""

    def begin(*gpus: dict[str, Any]) -> SimulatedGpus:
        file = tmp_path / "gpus.json"
        monkeypatch.setenv("NVIDIA_SIMULATED_STATE", str(file))
        inherited = [path for path in sys.path if path]
        monkeypatch.setenv("PYTHONPATH", ":".join([str(_BINDING), *inherited]))
        monkeypatch.syspath_prepend(str(_BINDING))
        monkeypatch.delitem(sys.modules, "pynvml", raising=False)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return SimulatedGpus(file, *gpus)

    return begin
