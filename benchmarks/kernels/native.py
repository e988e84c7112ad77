"""A native artifact beside TVM's virtual machine and ONNX Runtime: time, start-up, memory, size.

    python -m benchmarks.kernels.native [--models chain conv squeezenet ...] [--real DIRECTORY]
        [--threads 1] [--launches 5] [--starts 7]

`chain`, `products`, `conv` and `convs` take microseconds; other names are those of the light
models. The compiled builds are not tuned: both have the same kernels, and ONNX Runtime has its own.
Times are paired launches of fresh processes, in turn. A start is a whole process from its beginning
to the end of its first inference; `C` is a program that is linked with the object. With more than
one thread there is the object of one launch, too. Prints the tables of docs/benchmarks.
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
from tests.support.small_onnx import chain_model, conv_model, save

from benchmarks.kit.collected import collected
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import saved
from benchmarks.kit.tables import heading, row
from tunegate.artifacts.candidates import LAUNCH
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.ports import Builder, BuildJob, ModelJob
from tunegate.runtimes.builder import reference_builder
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_whole_model.forms import WHOLE
from tunegate_whole_model.native.c_compiler import c_compiler

SHAPES = Path(__file__).parents[1] / "data" / "real_shapes.json"
Shapes = dict[str, dict[str, tuple[int, ...]]]
PAIRS = 6
SMALL = {
    "chain": lambda: chain_model(layers=4, width=64),
    "products": lambda: chain_model(layers=8, width=256),
    "conv": lambda: conv_model(channels=16, out=32, size=14),
    "convs": lambda: conv_model(channels=64, out=64, size=14),
}
STARTED = (
    "import sys; from pathlib import Path; from tunegate.runtimes.loading import bound_inferences; "
    "bound_inferences(Path(sys.argv[1]), 1)[0](); print(open('/proc/self/status').read())"
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
    """The costs of one process: seconds by the clock, and its peak of memory."""

    seconds: float
    peak_mb: float


def main() -> None:
    options = command_line(
        __doc__, models=["chain", "conv"], real=Path, threads=1, launches=5, starts=7
    )
    heading(
        "model | base, head | base ms | head ms | head / base | base MB | head MB", words=(0, 1)
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
        *((("one launch", "native", compiler),) if options.threads > 1 else ()),
        ("TVM", "runtime", compiler),
        ("ONNX Runtime", "runtime", reference_builder(scratch / "o", 1)),
    )
    for what, artifact, builder in kinds:
        settings = {LAUNCH: WHOLE} if what == "one launch" else {}
        target = TargetConfig(name="cpu", threads=options.threads, artifact=artifact)
        model = ModelJob(file=file, path=name, shapes=shapes, target=target)
        found[what] = scratch / what.replace(" ", "-")
        at = found[what]
        job = BuildJob(model=model, records={}, sources={}, directory=at, settings=settings)
        (build,) = builder.build([job])
        if build.error:
            row(name, build.error)
            return None
    compiler.close()
    return found


def show(name: str, builds: dict[str, Path], launches: int, scratch: Path) -> None:
    """A row for each pair: the object of one launch where there is one, else the plain one,
    against all others."""
    head = "one launch" if "one launch" in builds else "native"
    bench = FreshProcesses(scratch / "bench", 1)
    pairs = {base: bench.pair(at, builds[head]) for base, at in builds.items() if base != head}
    found = {base: [pair.launch(PAIRS) for _ in range(launches)] for base, pair in pairs.items()}
    for base, of in found.items():
        base_ms = statistics.median(each.base_ms for each in of)
        head_ms = statistics.median(each.head_ms for each in of)
        sizes = (f"{size_mb(each):.1f}" for each in (builds[base], builds[head]))
        times = f"{base_ms:.4f}", f"{head_ms:.4f}", ratio([each.effect for each in of])
        row(name, f"{base}, {head}", *times, *sizes)


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
