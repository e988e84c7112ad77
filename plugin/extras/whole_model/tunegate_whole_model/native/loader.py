"""Loads a native artifact by the functions of its header: no runtime is imported."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tunegate.errors import ArtifactError
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_whole_model.native.program import ALIGNMENT_BYTES


class NativeArtifact:
    """One instance of the model, in this process. Raises ArtifactError if it cannot be loaded."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._artifact = artifact
        file = (directory / artifact.file).resolve()
        try:
            self._library = ctypes.CDLL(str(file))
        except OSError as error:
            raise ArtifactError(f"{file}: it does not load ({error}). Build it again.") from error
        self._library.model_error.restype = ctypes.c_char_p
        self._instance = ctypes.c_void_p()
        self._check_code(self._library.model_create(None, ctypes.byref(self._instance)))

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the output arrays."""
        run, outputs = self._prepare(feed)
        run()
        return outputs

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Returns a function that runs one inference: only the call."""
        return self._prepare(feed)[0]

    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
        """Returns nothing: the object does not stop between two kernels."""
        return {}

    def _prepare(self, feed: Mapping[str, Any]) -> tuple[Callable[[], object], list[Any]]:
        inputs = [_aligned_copy(feed[each.name], each.dtype) for each in self._artifact.inputs]
        outputs = [_empty(each.shape, each.dtype) for each in self._artifact.outputs]
        model_run, asked, instance = self._library.model_run, self._check_code, self._instance
        given, taken = _pointers(inputs), _pointers(outputs)
        # The pointers do not keep the arrays.
        kept = inputs, outputs

        def run() -> object:
            asked(model_run(instance, given, taken))
            return kept

        return run, outputs

    def _check_code(self, code: int) -> None:
        if code:
            said = self._library.model_error().decode(errors="replace")
            raise ArtifactError(f"{self._artifact.file}: {said}.")


def _aligned_copy(array: Any, dtype: str) -> Any:
    copy = _empty(np.shape(array), dtype)
    copy[...] = array
    return copy


def _empty(shape: tuple[int, ...], dtype: str) -> Any:
    """Returns an array aligned for kernels: the object copies unaligned inputs."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.empty(size + ALIGNMENT_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT_BYTES
    return raw[start : start + size].view(kind).reshape(shape)


def _pointers(arrays: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
