"""The operators in which a compiled model is behind ONNX Runtime, before and after tuning.

    python -m benchmarks.kernels.operators_behind MODEL.onnx [--shape x=1,3,224,224 ...]
        [--seconds 60 180] [--layout auto] [--top 12]

Builds the model with the default schedules and after so many seconds of tuning, on one thread, and
prints two tables in milliseconds: the functions that take longest, by what each build spends in
all kernels of that kind, and the operators of ONNX Runtime. `copies` are kernels that only move
data.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import onnx

from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.our_model import tune
from benchmarks.kit.tables import heading, row
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.models.preparation import prepare
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.builder import reference_builder
from tunegate.system.output.artifact_file import ArtifactFile

ROUNDS = 3
REFERENCE = "ONNX Runtime"
_MOVING = {
    "fused",
    "transpose",
    "reshape",
    "layout",
    "transform",
    "concatenate",
    "pad",
    "expand",
    "dims",
}
_NUMBER = re.compile(r"(?<=[a-z])\d+(?=_|$)")


class Profile(msgspec.Struct, frozen=True):
    """One build: milliseconds of an inference, and of the kernels of each kind in it."""

    milliseconds: float
    kinds: Mapping[str, float]

    @property
    def copies(self) -> float:
        return sum(ms for kind, ms in self.kinds.items() if set(kind.split("_")) <= _MOVING)


def main() -> None:
    options = command_line(
        __doc__,
        ("model", Path),
        shape=[""],
        seconds=[60.0],
        layout=Choice(("auto", "nhwc", "nchw"), "auto"),
        top=12,
    )
    target = TargetConfig(name="cpu", threads=1, layout=options.layout)
    with scratch_folder() as folder:
        model = fixed(options.model, options.shape, folder / "fixed")
        # Nothing can be measured in no seconds: these are the default schedules.
        tuned = tune(model, target, [0.0, *options.seconds], folder / "ours")
        builds = {f"after {at:g} s" if at else "untuned": b for at, b in tuned.builds.items()}
        builds[REFERENCE] = reference(model, target, folder)
        show(dict(profiles(builds, folder)), options.top)


def fixed(model: Path, shapes: list[str], into: Path) -> Path:
    """The model with these shapes of its inputs."""
    pairs = [shape.split("=") for shape in shapes if shape]
    wanted = {name: tuple(int(n) for n in sizes.split(",")) for name, sizes in pairs}
    return prepare(model, shapes=wanted, into=into, path="m.onnx").fixed


def reference(model: Path, target: TargetConfig, folder: Path) -> Path:
    job = BuildJob(
        model=ModelJob(file=model, path="m.onnx", shapes={}, target=target),
        records={},
        sources={},
        directory=folder / "reference",
    )
    (build,) = reference_builder(folder / "reference-scratch", 1).build([job])
    assert build.error is None, build.error
    return job.directory


def profiles(builds: Mapping[str, Path], folder: Path) -> Iterator[tuple[str, Profile]]:
    """The builds in turn: what else the machine does befalls all of them."""
    bench = FreshProcesses(folder / "bench", 1)
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        for name, build in builds.items():
            times[name].append(bench.single_ms(build))
    for name, build in builds.items():
        artifact = ArtifactFile.read(build)
        kinds = operator_types(build / artifact.file) if name == REFERENCE else {}
        # Without layers' names the kernels have those of their functions.
        msgspec.structs.replace(artifact, tasks=()).write(build)
        found: dict[str, float] = defaultdict(float)
        for kernel, ms in bench.operators_ms(build).items():
            found[kinds.get(kernel, _NUMBER.sub("", kernel))] += ms
        yield name, Profile(statistics.median(times[name]), found)


def operator_types(model: Path) -> dict[str, str]:
    """The types of a model's operators, by whatever they may be called."""
    nodes = onnx.load(model).graph.node
    named = {node.name: node.op_type for node in nodes}
    return named | {output: node.op_type for node in nodes for output in node.output}


def show(found: Mapping[str, Profile], top: int) -> None:
    ours = {name: profile for name, profile in found.items() if name != REFERENCE}
    last = list(ours.values())[-1].kinds
    heading(f"kernels | {' | '.join(ours)}")
    row("the model", *(f"{profile.milliseconds:.3f}" for profile in ours.values()))
    row("copies", *(f"{profile.copies:.3f}" for profile in ours.values()))
    for kind in sorted(last, key=lambda kind: -last[kind])[:top]:
        row(f"`{kind}`", *(f"{profile.kinds.get(kind, 0.0):.3f}" for profile in ours.values()))
    print()
    heading("operators | ONNX Runtime")
    theirs = found[REFERENCE]
    row("the model", f"{theirs.milliseconds:.3f}")
    for kind, ms in sorted(theirs.kinds.items(), key=lambda each: -each[1])[:top]:
        row(f"`{kind}`", f"{ms:.3f}")


if __name__ == "__main__":
    main()
