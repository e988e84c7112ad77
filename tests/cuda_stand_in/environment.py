"""The variables that give a process a CUDA device that is not there.

A process reads them when it begins (`LD_LIBRARY_PATH`), so what is tested must run in a child. All
pass through the product's own door for processes, so that its children have the device too.
"""

import json
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cuda_stand_in.toolchain import ROOT, build

_NVML = ROOT.parent / "support" / "simulated" / "simulated_nvml"
_CHECKOUT = ROOT.parents[1]
UUID = "GPU-stand-in"
_MEMORY_MB = 8192
_CAPABILITY = 90


def variables(
    scratch: Path,
    *,
    devices: Sequence[str] = (UUID,),
    parts: Sequence[str] = (),
    has_nvrtc: bool = True,
    busy_percent: int = 0,
    inherited: Mapping[str, str] = os.environ,
    **settings: object,
) -> dict[str, str]:
    """All variables of a process that sees these devices. `parts` are MIG devices of the first one.
    NVML says that whole devices are busy for `busy_percent` of each moment.
    `settings` are those of `driver/machine.h`, in small letters: `lost_after=100, memory_mb=64`.
    Files that the devices need lie in `scratch`."""
    place = build()
    scratch.mkdir(parents=True, exist_ok=True)
    memory = int(str(settings.get("memory_mb", _MEMORY_MB)))
    capability = divmod(int(str(settings.get("capability", _CAPABILITY))), 10)
    marker = scratch / "device-is-lost"
    state = scratch / "gpus.json"
    gpus = [
        {
            **_gpu(uuid, memory, parts if not number else ()),
            "capability": capability,
            "busy": busy_percent,
        }
        for number, uuid in enumerate(devices)
    ]
    gpus[0]["lost_marker"] = str(marker)
    state.write_text(json.dumps({"driver": "580.65", "gpus": gpus}))
    searched = [str(_NVML), *([str(ROOT / "python")] if has_nvrtc else [])]
    toolkit = ROOT / "toolkit"
    given = {
        "LD_LIBRARY_PATH": str(place / "lib"),
        "CUDA_PATH": str(toolkit),
        "CUDA_HOME": str(toolkit),
        "PATH": f"{toolkit / 'bin'}:{inherited.get('PATH', '')}",
        "PYTHONPATH": ":".join([*searched, *_without_a_compiler(has_nvrtc), *_own_places()]),
        "NVIDIA_SIMULATED_STATE": str(state),
        "NVIDIA_STAND_IN_UUIDS": ",".join([*parts, *devices[bool(parts) :]]),
        "NVIDIA_STAND_IN_COUNTERS": str(scratch / "launches"),
        "NVIDIA_STAND_IN_LOST_MARKER": str(marker),
        "NVIDIA_STAND_IN_CACHE": str(place.parent),
        # Else jobs beside each other would wait for one device.
        "TUNEGATE_LOCK_DIR": str(scratch),
    }
    named = {f"NVIDIA_STAND_IN_{name.upper()}": str(value) for name, value in settings.items()}
    kept = {name: value for name, value in inherited.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**kept, **given, **named}


def launches(given: Mapping[str, str]) -> tuple[int, ...]:
    """Returns each device's number of launches, by all processes that had these variables."""
    counters = Path(given["NVIDIA_STAND_IN_COUNTERS"]).read_bytes()
    devices = len(given["NVIDIA_STAND_IN_UUIDS"].split(","))
    return struct.unpack_from(f"{devices}q", counters, 16)


LOST, ILLEGAL_ADDRESS = 999, 700


def lose_device(given: Mapping[str, str], error: int = LOST) -> None:
    """From now on the device is lost for all processes that had these variables, among them
    `lost_after`. With another error each of their launches fails with that."""
    path = Path(given["NVIDIA_STAND_IN_COUNTERS"])
    path.touch()
    with path.open("r+b") as counters:
        counters.seek(8)
        counters.write(struct.pack("q", error))
    if error == LOST:
        Path(given["NVIDIA_STAND_IN_LOST_MARKER"]).touch()


def _gpu(uuid: str, memory_mb: int, parts: Sequence[str]) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "uuid": uuid,
        "name": "NVIDIA stand-in",
        "cores": 512,
        "memory": memory_mb << 20,
        "power_cap": 700_000,
        "mhz": 1980,
    }
    if parts:
        share = {"cores": 128, "memory": memory_mb << 18}
        whole["parts"] = [
            {"uuid": part, "name": "NVIDIA stand-in MIG 1g", **share} for part in parts
        ]
    return whole


def _own_places() -> list[str]:
    return [place for place in sys.path if place and Path(place) != _CHECKOUT]


def _without_a_compiler(has_nvrtc: bool) -> list[str]:
    """A place that hides the bindings of NVRTC which this environment has."""
    return [] if has_nvrtc else [str(ROOT / "without_nvrtc")]
