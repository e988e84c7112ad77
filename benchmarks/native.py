"""A native artifact beside TVM's virtual machine and ONNX Runtime: time, start-up, memory, size.

    python benchmarks/native.py [--models chain conv squeezenet ...] [--real DIRECTORY]
        [--threads 1] [--launches 5] [--starts 7]

`chain` and `conv` take microseconds; other names are those of the light models. The compiled builds
are not tuned: both have the same kernels, and ONNX Runtime has its own. Times are paired launches
of fresh processes, in turn. A start is a whole process from its beginning to the end of its first
inference; `C` is a program that is linked with the object. Prints the tables of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from kit.collected import collected
from kit.command import command_line, scratch_folder
from kit.models import saved
from kit.tables import heading, row
from tests.support.small_onnx import chain_model, conv_model, save

from tunegate.config import TargetConfig
from tunegate.edges.bench.driver import FreshProcesses
from tunegate.edges.native.c_compiler import c_compiler
from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.ports import Builder, BuildJob, ModelJob
from tunegate.runtimes.builder import reference_builder
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler

SHAPES = Path(__file__).parent / "data" / "real_shapes.json"
Shapes = dict[str, dict[str, tuple[int, ...]]]
PAIRS = 6
SMALL = {
    "chain": lambda: chain_model(layers=4, width=64),
    "conv": lambda: conv_model(channels=16, out=32, size=14),
}
STARTED = (
    "import sys; from pathlib import Path; from tunegate.runtimes.loading import bound_inference; "
    "bound_inference(Path(sys.argv[1]), 1)(); print(open('/proc/self/status').read())"
)
PROGRAM = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  model* m;
  char line[256];
  const void* inputs[64];
  void* outputs[64];
  for (int i = 0; i < model_input_count(); ++i) inputs[i] = calloc(1, model_input(i)->size_bytes);
  for (int i = 0; i < model_output_count(); ++i) outputs[i] = malloc(model_output(i)->size_bytes);
  if (model_create(NULL, &m) || model_run(m, inputs, outputs)) return 1;
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status)) fputs(line, stdout);
  return 0;
}
"""


class Start(NamedTuple):
    """What one process took: seconds by the clock, and its peak of memory."""

    seconds: float
    peak_mb: float


def main() -> None:
    options = command_line(
        __doc__, models=["chain", "conv"], real=Path, threads=1, launches=5, starts=7
    )
    heading(
        "model | native ms | of TVM's | of ONNX Runtime's | native MB | TVM MB | ONNX Runtime MB"
    )
    starts = []
    for name in options.models:
        with scratch_folder() as scratch:
            builds = built(name, options, scratch)
            if builds is not None:
                show(name, builds, options.launches, scratch)
                starts.append((name, started(builds, options.starts)))
    heading("model | started by | seconds | peak MB", words=(0, 1))
    for name, found in starts:
        for what, start in found.items():
            row(name, what, f"{start.seconds:.3f}", f"{start.peak_mb:.0f}")


def built(name: str, options: argparse.Namespace, scratch: Path) -> dict[str, Path] | None:
    """Directories by what loads them."""
    if name in SMALL:
        file = save(SMALL[name](), scratch / "m.onnx")
    else:
        file = (collected(options.real) if options.real else {}).get(name) or saved(name, scratch)
    shapes = msgspec.json.decode(SHAPES.read_bytes(), type=Shapes).get(name, {})
    compiler = MetaScheduleCompiler(scratch / "c", seed=1)
    found: dict[str, Path] = {}
    kinds: tuple[tuple[str, Literal["runtime", "native"], Builder], ...] = (
        ("native", "native", compiler),
        ("TVM", "runtime", compiler),
        ("ONNX Runtime", "runtime", reference_builder(scratch / "o", 1)),
    )
    for what, artifact, builder in kinds:
        target = TargetConfig(name="cpu", threads=options.threads, artifact=artifact)
        model = ModelJob(file=file, path=name, shapes=shapes, target=target)
        found[what] = scratch / what.replace(" ", "-")
        job = BuildJob(model=model, records={}, sources={}, directory=found[what])
        (build,) = builder.build([job])
        if build.error:
            row(name, build.error)
            return None
    compiler.close()
    return found


def show(name: str, builds: dict[str, Path], launches: int, scratch: Path) -> None:
    bench = FreshProcesses(scratch / "bench", 1)
    pairs = [bench.pair(builds[base], builds["native"]) for base in ("TVM", "ONNX Runtime")]
    effects: list[list[float]] = [[], []]
    native_ms = []
    for _ in range(launches):
        for found, pair in zip(effects, pairs, strict=True):
            launch = pair.launch(PAIRS)
            found.append(launch.effect)
            native_ms.append(launch.base_ms * math.exp(launch.effect))
    sizes = (f"{size_mb(each):.1f}" for each in builds.values())
    row(name, f"{statistics.median(native_ms):.4f}", *map(ratio, effects), *sizes)


def ratio(effects: Sequence[float]) -> str:
    """The median of launches, with the least and the most of one."""
    middle, low, high = (
        math.exp(each) for each in (statistics.median(effects), min(effects), max(effects))
    )
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def size_mb(directory: Path) -> float:
    artifact = ArtifactFile.read(directory)
    return sum((directory / name).stat().st_size for name in artifact.files) / 1e6


def started(builds: dict[str, Path], times: int) -> dict[str, Start]:
    """The medians of processes that are started in turn."""
    lines = {what: [sys.executable, "-c", STARTED, str(at)] for what, at in builds.items()}
    lines["C"] = [str(program(builds["native"]))]
    rounds = [{what: one_start(line) for what, line in lines.items()} for _ in range(times)]
    return {
        what: Start(
            statistics.median(each[what].seconds for each in rounds),
            statistics.median(each[what].peak_mb for each in rounds),
        )
        for what in lines
    }


def program(native: Path) -> Path:
    compiler = c_compiler()
    if compiler is None:
        raise SystemExit("no C compiler on the PATH")
    made = native.parent / "program"
    (native.parent / "program.c").write_text(PROGRAM)
    inputs = [str(native.parent / "program.c"), str(native / "libmodel.so")]
    line = [compiler, f"-I{native}", *inputs, f"-Wl,-rpath,{native}", "-o", str(made)]
    subprocess.run(line, check=True)
    return made


def one_start(line: Sequence[str]) -> Start:
    begun = time.perf_counter()
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    (peak,) = (each for each in done.stdout.splitlines() if each.startswith("VmHWM"))
    return Start(seconds, int(peak.split()[1]) / 1024)


if __name__ == "__main__":
    main()
