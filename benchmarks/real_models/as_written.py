"""How far ONNX Runtime's optimizations take a quantized model from what is written, on this CPU.

    python -m benchmarks.real_models.as_written DIRECTORY [--cpu NAME] [--inputs 16]
        [--save as_written --merge]

Collects the real models in DIRECTORY, and runs the static int8 one with all optimizations and with
none, on uniform inputs of the range that it quantizes. Errors are in percent of the largest output.
Started by `qemu-x86_64 -cpu Haswell,-hle,-rtm` it shows a CPU with AVX2 and without VNNI: numbers
are emulated exactly, and nothing is timed.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np

from benchmarks.kit.collected import collected
from benchmarks.kit.command import command_line
from benchmarks.kit.results import machine
from benchmarks.kit.tables import heading, row
from tunegate.edges.reference.session import NO_OPTIMIZATION, ReferenceSession
from tunegate.edges.reference.tolerance import errors

MODEL, SHAPE, LOW, HIGH = "orient_qdq_int8", (1, 3, 224, 224), -4.6, 4.9


def main() -> None:
    options = command_line(__doc__, ("directory", Path), cpu=machine(), inputs=16)
    model = collected(options.directory)[MODEL]
    optimized, written = ReferenceSession(model), ReferenceSession(model, level=NO_OPTIMIZATION)
    random = np.random.default_rng(0)
    feeds = [
        {"x": random.uniform(LOW, HIGH, SHAPE).astype("float32")} for _ in range(options.inputs)
    ]
    found = [100 * errors(optimized.run(feed)[0], written.run(feed)[0])[1] for feed in feeds]
    heading("CPU | inputs | least | median | largest")
    figures = (min(found), statistics.median(found), max(found))
    row(options.cpu, len(found), *(f"{each:.1f}" for each in figures))


if __name__ == "__main__":
    main()
