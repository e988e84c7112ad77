"""Shows that the gate finds an upgrade of ONNX Runtime that makes a model slower, and passes one
that changes nothing: `python -m benchmarks.gate.runtime_upgrade [--old 1.19.2] [--new 1.20.1]`. It
installs both versions from the package index. Prints the table of docs/runtimes.md."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.kit.command import command_line

_NUMPY = "2.3.5"


def _model(file: Path) -> None:
    """Sums squares over the first dimension, which 1.20 does more slowly than 1.19."""
    node = helper.make_node("ReduceSumSquare", ["x", "axes"], ["y"], "squares", keepdims=1)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64, 56, 56])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64, 56, 56])
    axes = numpy_helper.from_array(np.array([0], np.int64), "axes")
    graph = helper.make_graph([node], "squares", [x], [y], [axes])
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), file)


def _environment(directory: Path, version: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    python = str(directory / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-q"]
    wanted = ["--only-binary", ":all:", f"onnxruntime=={version}", f"numpy=={_NUMPY}"]
    subprocess.run([*pip, *wanted], check=True)
    return directory


def _row(base: Path, head: Path, model: Path, out: Path) -> str:
    environments = ["--env", str(base), "--env", str(head)]
    command = [sys.executable, "-m", "tunegate", "compare", "--json", *environments]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--out", str(out), str(model)],
        stdout=subprocess.PIPE,
        check=False,
        cwd=out.parent,
    )
    seconds = time.monotonic() - started
    verdict = json.loads(done.stdout)["findings"][0]
    change = verdict["change_percent"]
    shown = f"{change['center']:+.1f}% ({change['low']:+.1f} to {change['high']:+.1f}%)"
    return f"{verdict['status']} | {shown} | {seconds:.0f}"


def main() -> None:
    """Prints the table of docs/runtimes.md."""
    told = command_line(__doc__, old="1.19.2", new="1.20.1")
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        _model(here / "squares.onnx")
        base = _environment(here / "base", told.old)
        for name, version in (("head", told.new), ("again", told.old)):
            head = _environment(here / name, version)
            row = _row(base, head, here / "squares.onnx", here / f"out-{name}")
            sys.stdout.write(f"| {told.old} | {version} | {row} |\n")


if __name__ == "__main__":
    main()
