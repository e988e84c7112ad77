"""GSPC (Gibson et al., ASAP 2020): grouped convolutions against what exists, and by groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.kernels.grouped_convolutions import Case, timed
from benchmarks.kit.averages import geometric
from benchmarks.kit.models import one_thread
from benchmarks.papers.headline import Figure
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig

CHANNELS, WIDTH, WINDOW = 64, 28, 3
GROUPS = (1, 8, 32, 64)
TRIALS, SECONDS = 8, 8.0
EXISTING = {
    "stock": "TVM's own build",
    "as written": "TVM's rules, tuned",
    "ort": "ONNX Runtime",
    "openvino": "OpenVINO",
}


def figures(_: Path) -> Iterator[Figure]:
    one_thread()
    load_intrinsics("llvm")
    target = tvm_target(TargetConfig(name="cpu", threads=1))
    found = {
        groups: timed(Case(CHANNELS, WIDTH, groups, WINDOW), target, TRIALS, SECONDS, 1)[0]
        for groups in GROUPS
    }
    on = f"{CHANNELS} channels at {WIDTH}x{WIDTH}, {WINDOW}x{WINDOW}, {TRIALS} trials, one thread"
    several = {groups: times for groups, times in found.items() if groups > 1}
    listed = ", ".join(map(str, several))
    existing = [f"{over(several, name):.1f}x {what}" for name, what in installed(several).items()]
    yield Figure("grouped-existing", ", ".join(existing), f"{on}, G = {listed}")
    first = found[1]["tuned"]
    scaled = [f"{times['tuned'] * groups / first:.2f}" for groups, times in several.items()]
    yield Figure("grouped-scaling", ", ".join(scaled), f"{on}, G = {listed}")


def installed(found: Mapping[int, Mapping[str, float]]) -> dict[str, str]:
    """Returns the names of what is installed here."""
    return {name: what for name, what in EXISTING.items() if all(name in t for t in found.values())}


def over(found: Mapping[int, Mapping[str, float]], name: str) -> float:
    return geometric([times[name] / times["tuned"] for times in found.values()])
