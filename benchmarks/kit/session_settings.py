"""ONNX Runtime's own settings beside its defaults, in one process, each in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tunegate.models import narrow_types
from tunegate.models.reference.onnx_runtime import onnxruntime, open_session, timed_options
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactFile

Change = Callable[[Any], object]
_TURN_SECONDS = 0.15
_LEVEL, _MODE = onnxruntime.GraphOptimizationLevel, onnxruntime.ExecutionMode
_SPINNING = "session.intra_op.allow_spinning"


def _nothing(options: Any) -> None:
    """Keeps the defaults."""


def _level(level: Any) -> Change:
    return lambda options: setattr(options, "graph_optimization_level", level)


def _parallel(options: Any) -> None:
    options.execution_mode = _MODE.ORT_PARALLEL
    options.inter_op_num_threads = options.intra_op_num_threads


SETTINGS: Mapping[str, Change] = {
    "defaults": _nothing,
    "no optimization": _level(_LEVEL.ORT_DISABLE_ALL),
    "basic": _level(_LEVEL.ORT_ENABLE_BASIC),
    "extended": _level(_LEVEL.ORT_ENABLE_EXTENDED),
    "no spinning": lambda options: options.add_session_config_entry(_SPINNING, "0"),
    "parallel": _parallel,
    "no memory pattern": lambda options: setattr(options, "enable_mem_pattern", False),
    "no arena": lambda options: setattr(options, "enable_cpu_mem_arena", False),
    "denormals are 0": lambda options: options.add_session_config_entry(
        "session.set_denormal_as_zero", "1"
    ),
}


def settings_ms(directory: Path, threads: int, rounds: int) -> dict[str, float]:
    """The time of an inference under each, as the median of its turns; the build of ONNX Runtime is
    in `directory`."""
    artifact = ArtifactFile.read(directory)
    feed = seeded_inputs(artifact.inputs, 1)
    sessions = {
        name: _open_session(directory / artifact.file, threads, change)
        for name, change in SETTINGS.items()
    }
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(rounds):
        for name, session in sessions.items():
            times[name].append(_turn_ms(session, feed))
    return {name: statistics.median(found) for name, found in times.items()}


def _open_session(model: Path, threads: int, change: Change) -> Any:
    options = timed_options(threads)
    change(options)
    return open_session(model, options, ["CPUExecutionProvider"]).session


def _turn_ms(session: Any, feed: Mapping[str, Any]) -> float:
    """The median of the inferences of one turn."""
    found: list[float] = []
    until = time.perf_counter() + _TURN_SECONDS
    while not found or time.perf_counter() < until:
        started = time.perf_counter()
        narrow_types.run(session, feed)
        found.append(1e3 * (time.perf_counter() - started))
    return statistics.median(found)
