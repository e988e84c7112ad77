"""Recurrent operators of many steps: unrolled and compiled, beside ONNX Runtime.

    python -m benchmarks.kernels.long_recurrences [--steps 64 256 1024] [--hidden 64 256]
        [--seconds 20] [--kinds LSTM GRU]

Each is a model of one operator and a batch of 1, as wide inside as its input. It is tuned for so
many seconds (all its steps are one kernel, so few are needed), opened and linked with as many steps
as are asked for, whatever the product's own limit is, and timed in one process, in turn with ONNX
Runtime on one thread, in time of the processor.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.kernel_threads import use_threads
from benchmarks.kit.our_model import Records, opened_reference, records
from benchmarks.kit.tables import heading, row
from tunegate.compiler.build.build_model import build_model
from tunegate.compiler.importing import recurrent
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import TvmArtifact, race_in_turns
from tunegate.compiler.opening import opened_model
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.models.inputs.drawn_inputs import draw_inputs
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.protocol import ModelFile

GATES = {"LSTM": 4, "GRU": 3}
TUNED_STEPS = 8
"""The kernels of a step are those of every other one, so few steps tune them."""
CPU = TargetConfig(name="cpu", threads=1)


class Timed(NamedTuple):
    """Seconds to open and to link a model, and milliseconds of an inference under each."""

    build_seconds: float
    compiled_ms: float
    other_ms: float


def main() -> None:
    options = command_line(
        __doc__, steps=[64, 256, 1024], hidden=[64, 256], seconds=20.0, kinds=["LSTM", "GRU"]
    )
    load_intrinsics("llvm")
    use_threads(1)
    heading("operator | width | steps | to build, s | TVM, ms | ONNX Runtime, ms | TVM / ORT")
    for kind in options.kinds:
        for hidden in options.hidden:
            with scratch_folder() as folder:
                few = saved(kind, TUNED_STEPS, hidden, folder)
                compiler = MetaScheduleCompiler(folder / "compiler", seed=1)
                known = records(compiler, few, CPU, options.seconds, folder / "tuned")
                for steps in options.steps:
                    one = timed(saved(kind, steps, hidden, folder), steps, known)
                    times = (f"{one.build_seconds:.1f}", f"{one.compiled_ms:.3f}")
                    ratio = f"{one.compiled_ms / one.other_ms:.2f}"
                    row(kind, hidden, steps, *times, f"{one.other_ms:.3f}", ratio)


def saved(kind: str, steps: int, hidden: int, folder: Path) -> Path:
    draw = np.random.default_rng(0)
    width = GATES[kind] * hidden
    shapes = {"w": (1, width, hidden), "r": (1, width, hidden), "b": (1, 2 * width)}
    scale = 1 / np.sqrt(hidden)
    weights = [
        numpy_helper.from_array(draw.uniform(-scale, scale, shape).astype("float32"), name)
        for name, shape in shapes.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, ["x", "w", "r", "b"], ["y"], hidden_size=hidden)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, 1, hidden])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, 1, hidden])],
        weights,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file = folder / f"{steps}.onnx"
    onnx.save(made, file)
    return file


def timed(file: Path, steps: int, known: Records) -> Timed:
    recurrent.MOST_STEPS = steps
    given = ModelFile(file=str(file), path="m.onnx", shapes={})
    place = file.with_suffix("")
    started = time.monotonic()
    opened = opened_model(given, CPU, place / "opened")
    request = BuildModel(
        model=given,
        target=CPU,
        records=known,
        sources=dict.fromkeys(known, "search"),
        directory=str(place / "built"),
        scratch=str(place / "scratch"),
        seed=1,
    )
    build_model(request, opened, tvm_target(CPU))
    build_seconds = time.monotonic() - started
    artifact = ArtifactFile.read(place / "built")
    feed = seeded_inputs(draw_inputs(opened.prepared, request.inputs, "m.onnx").tensors, 1)
    compiled = TvmArtifact(place / "built", artifact).bound(feed)
    session = opened_reference(file, 1)
    return Timed(build_seconds, *race_in_turns(compiled, lambda: session.run(None, feed), 1))


if __name__ == "__main__":
    main()
