"""A model read and compiled by OpenVINO, in this process, with nothing left to its defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tunegate.artifacts.candidates import FLOAT32, PRECISION
from tunegate.edges.output.artifact_file import ArtifactTensor
from tunegate.errors import UnsupportedModelError
from tunegate.runtimes.openvino.library import openvino
from tunegate.runtimes.openvino.precisions import HINTS

_DEVICE: Final = "CPU"
_HINT: Final = "INFERENCE_PRECISION_HINT"
_TELLING: Final = (
    (re.compile(r"No conversion rule found for operations: ([^\n]+)"), "has no {}"),
    (re.compile(r"Unsupported value_info type: ([^\n]+)"), "{} is no tensor"),
    (re.compile(r"^-- (\S+) with a message", re.MULTILINE), "does not take {}"),
)
"""Lines that say what is wrong, in errors of many lines."""
_MAX_CHARACTERS: Final = 200


def settings_of(
    settings: Mapping[str, str], threads: int, *, is_profiled: bool = False
) -> dict[str, Any]:
    """Returns OpenVINO's settings. Its own default of a precision is bfloat16 where the processor
    has it. The gate chooses the cores, so it must not pin its threads."""
    return {
        _HINT: HINTS.get(settings.get(PRECISION, FLOAT32), HINTS[FLOAT32]),
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "PERF_COUNT": is_profiled,
    }


def compiled(model: Path, inputs: Sequence[ArtifactTensor], told: Mapping[str, Any]) -> Any:
    """Compiles the model for inputs of these shapes. Raises UnsupportedModelError where it cannot
    be taken, and where OpenVINO would compute in other numbers than it was told."""
    try:
        core = openvino.Core()
        graph = core.read_model(model)
        graph.reshape({each.name: list(each.shape) for each in inputs})
        found = core.compile_model(graph, _DEVICE, dict(told))
    except RuntimeError as error:
        raise UnsupportedModelError(f"OpenVINO {refusal_of(error)}") from error
    used = found.get_property(_HINT).to_string()
    if used != told[_HINT]:
        raise UnsupportedModelError(f"OpenVINO computes in {used} in place of {told[_HINT]} here")
    return found


def refusal_of(error: Exception) -> str:
    """Returns the error's statement about the model, in one line."""
    text = str(error).strip()
    for pattern, said in _TELLING:
        found = pattern.search(text)
        if found:
            return said.format(found[1].strip())[:_MAX_CHARACTERS]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"cannot take the model: {lines[-1] if lines else type(error).__name__}"[
        :_MAX_CHARACTERS
    ]
