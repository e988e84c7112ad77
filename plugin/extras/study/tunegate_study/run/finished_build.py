"""The state of a cell after its build."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.builds import Build, ErrorEstimate
from tunegate.config import AccuracyConfig
from tunegate.decide.error_budget import estimate_errors

ANY_ERROR = AccuracyConfig(max_error=100.0)
_OF_EVERY_LAYER = ("auto", "direct")


def error_of(build: Build) -> ErrorEstimate | None:
    """Returns the error of a build in lower precision, None for float32, which counts as equal."""
    if build.sampled is None:
        return None
    return msgspec.structs.replace(estimate_errors(build.sampled, ANY_ERROR)[0], limit=None)


def may_pass(build: Build) -> bool:
    """Returns whether the rejection of a build may not recur: numbers are compared on newly drawn
    inputs, and a process that died may live."""
    return build.error is not None and (build.crashed or build.check is not None)


def layers_with(build: Build, algorithm: str) -> int:
    """Returns how many layers have this form because it was requested."""
    return sum(task.weight for task in build.tasks if task.algorithm == algorithm)


def misfit(algorithm: str, layers: int) -> str:
    """Returns that no layer can have the form, '' if one has, or any form is allowed."""
    if layers or algorithm in _OF_EVERY_LAYER:
        return ""
    return f"no layer of the model has the form {algorithm} here"
