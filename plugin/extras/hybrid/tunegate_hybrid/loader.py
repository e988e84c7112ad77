"""An artifact of parts, loaded: runs, and says what each operator of each part takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_hybrid.plan_file import PartsPlan
from tunegate_hybrid.program import PartsProgram


class HybridArtifact:
    """Libraries of kernels and ONNX files, in this process."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._directory, self._threads = directory, artifact.threads
        self._plan = PartsPlan.read(directory)

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        return self._program.run(feed)

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        return self._program.bound(feed)

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        # Reads graphs with the `onnx` package, which would double the time to start.
        from tunegate.runtimes.onnxruntime.operator_profile import profiled_ms  # noqa: PLC0415
        from tunegate.runtimes.onnxruntime.runtime import opened  # noqa: PLC0415
        from tunegate_hybrid.profile import part_kernels_ms  # noqa: PLC0415

        found: dict[str, float] = defaultdict(float)
        for part, given in self._program.feeds(feed):
            file = self._directory / part.file
            times = (
                part_kernels_ms(file, part, given, inferences)
                if part.is_compiled
                else profiled_ms(file, given, inferences, partial(opened, file, self._threads))
            )
            for name, milliseconds in times.items():
                found[name] += milliseconds
        return dict(found)

    @cached_property
    def _program(self) -> PartsProgram:
        return PartsProgram(self._directory, self._plan, self._threads)
