"""Compares ONNX Runtime's optimizations of a quantized model with the model as written, on this
CPU.

    python -m benchmarks.real_models.as_written DIRECTORY [--cpu NAME] [--inputs 16]
        [--save as_written --merge]

Collects the real models in DIRECTORY, and runs the static int8 one with all optimizations and with
none, on uniform inputs of the range that it quantizes: with its own settings, and with those that
are right on every CPU, which tunegate's sessions have. Errors are in percent of the largest output.
Started by `qemu-x86_64 -cpu Haswell,-hle,-rtm` it shows a CPU with AVX2 and without VNNI: numbers
are emulated exactly, and nothing is timed.
"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import onnxruntime

from benchmarks.kit.collected import collected
from benchmarks.kit.command import command_line
from benchmarks.kit.results import machine
from benchmarks.kit.tables import heading, row
from tunegate.models.reference.onnx_runtime import exact_options
from tunegate.models.reference.session import NO_OPTIMIZATION, ReferenceSession
from tunegate.models.reference.tolerance import errors

MODEL, SHAPE, LOW, HIGH = "orient_qdq_int8", (1, 3, 224, 224), -4.6, 4.9


_SETTINGS = {"its own": onnxruntime.SessionOptions, "exact": exact_options}


def main() -> None:
    options = command_line(__doc__, ("directory", Path), cpu=machine(), inputs=16)
    model = collected(options.directory)[MODEL]
    random = np.random.default_rng(0)
    feeds = [
        {"x": random.uniform(LOW, HIGH, SHAPE).astype("float32")} for _ in range(options.inputs)
    ]
    as_written = ReferenceSession(model, level=NO_OPTIMIZATION)
    expected = [as_written.run(feed)[0] for feed in feeds]
    heading("CPU | settings | inputs | least | median | largest")
    for name, settings in _SETTINGS.items():
        session = onnxruntime.InferenceSession(str(model), settings())
        got = [session.run(None, feed)[0] for feed in feeds]
        found = [100 * errors(*both)[1] for both in zip(got, expected, strict=True)]
        figures = (min(found), statistics.median(found), max(found))
        row(options.cpu, name, len(found), *(f"{each:.1f}" for each in figures))


if __name__ == "__main__":
    main()
