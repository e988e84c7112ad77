"""The kernels of a build by TVM, timed one by one inside the model."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tunegate.compiler.loader import NO_KERNELS
from tunegate.compiler.runtime import arguments_of, device_of_kind, watched_machine
from tunegate.system.output.artifact_file import ArtifactFile


class WatchedKernels:
    """A build in this process. `inferences` has the milliseconds of each kernel by `clock`, which
    tells seconds, for each inference so far."""

    def __init__(self, build: Path, feed: Mapping[str, Any], clock: Callable[[], float]) -> None:
        artifact = ArtifactFile.read(build)
        device = device_of_kind(artifact.device)
        self._machine = watched_machine(build / artifact.file, device, self._watch)
        self._arguments = arguments_of(artifact.inputs, feed, device)
        self._clock, self._began = clock, 0.0
        self.inferences: list[dict[str, float]] = []

    def infer(self) -> None:
        self.inferences.append(defaultdict(float))
        self._machine["main"](*self._arguments)

    def _watch(self, _: object, name: str, is_before: bool, *__: object) -> int:
        if is_before:
            self._began = self._clock()
        elif not name.startswith(NO_KERNELS):
            kernel = name.removesuffix("_prepacked")
            self.inferences[-1][kernel] += 1e3 * (self._clock() - self._began)
        return 0
