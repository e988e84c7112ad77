"""Tries the execution providers that come as packages: which work on this CPU, and which pay.

    python -m benchmarks.latency.plugin_providers [--packages onnxruntime-ggml ...] [--repeats 30]

Installs each package beside the ONNX Runtime that it asks for, in an environment of its own,
registers its library where it has one, and runs four models on each device that it lists beside the
CPU provider of the same ONNX Runtime. Times are of the processor, so that other work matters less.
"""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading

PACKAGES = [
    "onnxruntime-ggml",
    "nxrt-ep-cpu",
    "onnxruntime-openvino",
    "onnxruntime-ep-openvino",
    "onnxruntime-ep-webgpu",
    "onnxruntime-qnn",
]
CHILD = Path(__file__).with_name("plugin_provider_child.py")


def main() -> None:
    options = command_line(__doc__, packages=PACKAGES, repeats=30)
    heading(
        "package | ONNX Runtime | device | model | its nodes | ms | CPU provider, ms | ratio | "
        "error over the largest output",
        words=(0, 2, 3),
    )
    with scratch_folder() as folder:
        for package in options.packages:
            for row in rows(package, folder / package, options.repeats):
                print("| " + " | ".join(row) + " |", flush=True)


def rows(package: str, folder: Path, repeats: int) -> list[list[str]]:
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    asked = [] if package == "onnxruntime-openvino" else ["onnxruntime"]
    install = [str(python), "-m", "pip", "install", "-q", "numpy", "onnx", *asked, package]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if installed.returncode:
        return [[package, "", f"not installed: {_last(installed.stderr)}", *[""] * 6]]
    command = [str(python), str(CHILD), package.replace("-", "_"), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    if done.returncode or not lines:
        return [[package, "", f"ends with {done.returncode}: {_last(done.stderr)}", *[""] * 6]]
    return [[package, *json.loads(line)] for line in lines]


def _last(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:100].replace("|", " ")


if __name__ == "__main__":
    main()
