"""Files of recorded launches: NumPy archives with two arrays for each series.

`<series>.times_ns` is unsigned, [launch, block pair, arm, inference];
`<series>.seconds` is what one launch took.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from research.gate_rules.recorded import RecordedSeries
from tunegate.errors import ArtifactError

_TIMES, _SECONDS = ".times_ns", ".seconds"
_DIMENSIONS, _ARMS = 4, 2
MIN_LAUNCHES = 65
"""Launches of a series: one job with a history of 64."""


def read_launches(path: Path) -> tuple[RecordedSeries, ...]:
    """The series of a file in the order of their names. Raises ArtifactError."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        message = f"{path}: not a file of recorded launches ({error}). Name an .npz file."
        raise ArtifactError(message) from error
    names = sorted(name.removesuffix(_TIMES) for name in found if name.endswith(_TIMES))
    if not names:
        message = f"{path}: no array is called <series>{_TIMES}. Record launches again."
        raise ArtifactError(message)
    return tuple(_series(path, name, found) for name in names)


def _series(path: Path, name: str, found: Mapping[str, np.ndarray]) -> RecordedSeries:
    times, seconds = found[name + _TIMES], found.get(name + _SECONDS)
    if times.ndim != _DIMENSIONS or times.shape[2] != _ARMS or times.dtype.kind != "u":
        message = f"{path}: {name}{_TIMES} is not unsigned [launch, pair, 2, inference]."
        raise ArtifactError(message)
    if len(times) < MIN_LAUNCHES or not times.all():
        message = f"{path}: {name}: fewer than {MIN_LAUNCHES} launches, or a time of 0."
        raise ArtifactError(message)
    if seconds is None or seconds.shape != () or not float(seconds) > 0:
        message = f"{path}: {name}{_SECONDS} is not a positive number."
        raise ArtifactError(message)
    return RecordedSeries(name, times.astype(np.float64) / 1e6, float(seconds))


def write_launches(path: Path, series: Mapping[str, tuple[np.ndarray, float]]) -> None:
    """`series` maps a name to its times in nanoseconds and the seconds of one launch."""
    arrays: dict[str, Any] = {}
    for name, (times_ns, seconds) in series.items():
        arrays[name + _TIMES] = np.asarray(times_ns, dtype=np.uint32)
        arrays[name + _SECONDS] = np.float64(seconds)
    np.savez_compressed(path, **arrays)
