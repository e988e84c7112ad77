"""An ONNX file as an artifact, in the process that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tunegate.edges.output.artifact_file import ArtifactFile
from tunegate.runtimes.onnxruntime.session import opened


class OnnxArtifact:
    """An ONNX file, in this process."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._threads = directory / artifact.file, artifact.threads

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        outputs: Sequence[Any] = self._session.run(None, dict(feed))
        return outputs

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        session, given = self._session, dict(feed)
        return lambda: session.run(None, given)

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        # Reads the graph with the `onnx` package, which would double the time to start.
        from tunegate.runtimes.onnxruntime.operator_profile import profiled_ms  # noqa: PLC0415

        return profiled_ms(self._file, feed, inferences, partial(opened, self._file, self._threads))

    @cached_property
    def _session(self) -> Any:
        return opened(self._file, self._threads)
