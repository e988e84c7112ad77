"""Compares a build for a GPU with itself: launches, their noise, the clock, with and without CUDA
graphs.

    python -m benchmarks.gate.gpu_launches transformer-128 [--launches 6] [--batches 1 16 32]

Prints a row for each kind of launch. With batches it prints, for a transformer of each, of this
`--sequence` and `--width`, its kernels by themselves, as a CUDA graph and as one persistent kernel
instead. (Zhuang et al., "MonoNN", OSDI
2024: 1.91 times less than its baselines in the mean, 2.49 at most.)
"""

from __future__ import annotations

import statistics
from pathlib import Path

import msgspec

from benchmarks.kit.command import Many, command_line, scratch_folder
from benchmarks.kit.models import saved
from benchmarks.kit.tables import heading
from benchmarks.papers.launch_ways import show_ways
from benchmarks.tuning.gpu_tuning import GPU
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler


def main() -> None:
    options = command_line(
        __doc__,
        "model",
        launches=6,
        batches=Many(int, is_required=False),
        sequence=64,
        width=256,
    )
    if options.batches:
        show_ways(GPU, options.batches, options.launches, options.sequence, options.width)
        return
    with scratch_folder() as scratch:
        model = saved(options.model, scratch)
        graphs = built(model, GPU, scratch, "graphs")
        plain = built(model, msgspec.structs.replace(GPU, cuda_graphs=False), scratch, "plain")
        heading("base, head | launches | effect, % | spread, % | noise, % | ms | SM MHz | dropped")
        show("graphs, graphs", graphs, graphs, scratch, options.launches)
        show("without, graphs", plain, graphs, scratch, options.launches)


def built(model: Path, target: TargetConfig, scratch: Path, name: str) -> Path:
    compiler = MetaScheduleCompiler(scratch / f"compile-{name}", seed=1)
    job = ModelJob(file=model, path="m.onnx", shapes={}, target=target)
    work = BuildJob(model=job, records={}, sources={}, directory=scratch / name)
    (found,) = compiler.build([work])
    compiler.close()
    if found.error:
        raise SystemExit(found.error)
    if found.without_graphs:
        print(f"{name}: without graphs after all: {found.without_graphs}")
    return scratch / name


def show(name: str, base: Path, head: Path, scratch: Path, count: int) -> None:
    bench = FreshProcesses(scratch / "bench", 1, GPU).pair(base, head)
    launches = [bench.launch(8) for _ in range(count)]
    effects = [100 * launch.effect for launch in launches]
    clocks = [launch.clocks for launch in launches if launch.clocks]
    mhz = statistics.median(each.head_mhz or 0.0 for each in clocks) if clocks else 0.0
    print(
        f"| {name} | {count} | {statistics.fmean(effects):+.2f} | {statistics.stdev(effects):.2f} "
        f"| {100 * statistics.median(launch.noise for launch in launches):.2f} | "
        f"{statistics.median(launch.head_ms for launch in launches):.3f} | {mhz:.0f} | "
        f"{sum(each.dropped for each in clocks)} |"
    )


if __name__ == "__main__":
    main()
