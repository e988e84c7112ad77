"""A transformer on a GPU as kernels, as a CUDA graph, and as one persistent kernel."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from pathlib import Path

import msgspec
from tests.support.models.transformer import transformer
from tests.support.small_onnx import save

from benchmarks.kit.command import scratch_folder
from benchmarks.kit.tables import heading, row
from tunegate.artifacts.candidates import LAUNCH
from tunegate.config import TargetConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate_whole_model.forms import WHOLE

PAIRS = 8
WAYS = ("kernels", "graph", "whole")


def show_ways(
    gpu: TargetConfig, batches: Iterable[int], launches: int, sequence: int, width: int
) -> None:
    """Prints a row for each batch and way. Nothing is tuned; the kernels are the base."""
    heading("batch | way | ms | kernels / way", words=(1,))
    for batch in batches:
        with scratch_folder() as scratch:
            model = transformer(sequence=sequence, width=width, batch=batch)
            file = save(model, scratch / "m.onnx")
            builds = {way: _built(gpu, way, file, scratch) for way in WAYS}
            _show(gpu, batch, builds, launches, scratch)


def _built(gpu: TargetConfig, way: str, file: Path, scratch: Path) -> Path | str:
    """The directory of the build, or why there is none."""
    compiler = MetaScheduleCompiler(scratch / f"compile-{way}", seed=1)
    target = msgspec.structs.replace(gpu, cuda_graphs=way == "graph")
    job = BuildJob(
        model=ModelJob(file=file, path="m.onnx", shapes={}, target=target),
        records={},
        sources={},
        directory=scratch / way,
        settings={LAUNCH: WHOLE} if way == WHOLE else {},
    )
    (found,) = compiler.build([job])
    compiler.close()
    return found.error or found.without_graphs or job.directory


def _show(
    gpu: TargetConfig, batch: int, builds: dict[str, Path | str], launches: int, scratch: Path
) -> None:
    base = builds["kernels"]
    for way, head in builds.items():
        if isinstance(base, str) or isinstance(head, str):
            row(str(batch), way, str(head if isinstance(head, str) else base))
            continue
        pair = FreshProcesses(scratch / "bench" / way, 1, gpu).pair(base, head)
        found = [pair.launch(PAIRS) for _ in range(launches)]
        times = statistics.median(each.head_ms for each in found)
        faster = math.exp(-statistics.median(each.effect for each in found))
        row(str(batch), way, f"{times:.4f}", f"{faster:.2f}")
