"""A compiled artifact, loaded: the same few lines that `docs/deploying.md` gives to users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import tvm

from tunegate.compiler.build.kernel_profile import kernels_ms
from tunegate.compiler.runtime import arguments_of, device_of_kind, machine_of
from tunegate.system.output.artifact_file import ArtifactFile


class TvmArtifact:
    """A shared library of kernels, in this process."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._artifact = directory / artifact.file, artifact
        self._device = device_of_kind(artifact.device)

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the output arrays."""
        outputs = self._main(*self._inputs(feed))
        several = len(self._artifact.outputs) > 1
        return [output.numpy() for output in (outputs if several else [outputs])]

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Returns one inference: nothing but the call and the wait for the device."""
        main, inputs, device = self._main, self._inputs(feed), self._device

        def run() -> object:
            output = main(*inputs)
            device.sync()
            return output

        return run

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        return kernels_ms(
            self._file, self._artifact.tasks, self._device, self._inputs(feed), inferences
        )

    def _inputs(self, feed: Mapping[str, Any]) -> list[Any]:
        return arguments_of(self._artifact.inputs, feed, self._device)

    @cached_property
    def _main(self) -> Any:
        return machine_of(self._file, self._device)[self._artifact.entry]


def device_exists(kind: str) -> bool:
    return kind != "cuda" or bool(tvm.cuda().exist)
