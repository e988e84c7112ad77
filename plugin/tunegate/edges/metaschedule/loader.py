"""Run a compiled artifact: the same few lines that `docs/deploying.md` gives to users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import tvm

from tunegate.edges.metaschedule.runtime import machine_of
from tunegate.edges.output.artifact_file import ArtifactFile

RunModel = Callable[[Mapping[str, Any]], list[Any]]


def load(directory: Path) -> RunModel:
    """A function from input arrays by name to the list of output arrays."""
    artifact = ArtifactFile.read(directory)
    device, main = _main(directory, artifact)

    def run(feed: Mapping[str, Any]) -> list[Any]:
        inputs = [tvm.runtime.tensor(feed[t.name], device) for t in artifact.inputs]
        outputs = main(*inputs)
        several = len(artifact.outputs) > 1
        return [o.numpy() for o in (outputs if several else [outputs])]

    return run


def bound_inference(directory: Path, feed: Mapping[str, Any]) -> Callable[[], object]:
    """One inference on these inputs: nothing but the call and the wait for the device."""
    artifact = ArtifactFile.read(directory)
    device, main = _main(directory, artifact)
    inputs = [tvm.runtime.tensor(feed[t.name], device) for t in artifact.inputs]

    def run() -> object:
        output = main(*inputs)
        device.sync()
        return output

    return run


def _main(directory: Path, artifact: ArtifactFile) -> tuple[Any, Any]:
    device = tvm.cuda() if artifact.device == "cuda" else tvm.cpu()
    return device, machine_of(directory / artifact.file, device)[artifact.entry]


def device_exists(kind: str) -> bool:
    return kind != "cuda" or bool(tvm.cuda().exist)
