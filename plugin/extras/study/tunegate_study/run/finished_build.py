"""What a finished build says of its cell."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.builds import Build, ErrorEstimate
from tunegate.config import AccuracyConfig
from tunegate.decide.error_budget import estimated

ANY_ERROR = AccuracyConfig(max_error=100.0)
_OF_EVERY_LAYER = ("auto", "direct")


def error_of(build: Build) -> ErrorEstimate | None:
    """Returns how far a build in other numbers is off; None for float32, which is held to be
    equal."""
    if build.sampled is None:
        return None
    return msgspec.structs.replace(estimated(build.sampled, ANY_ERROR)[0], limit=None)


def may_pass(build: Build) -> bool:
    """Returns whether what refuses the build may not do so in another run: numbers are compared on
    inputs that are drawn anew, and a process that died may live."""
    return build.error is not None and (build.crashed or build.check is not None)


def layers_with(build: Build, algorithm: str) -> int:
    """Returns how many layers have this form because it was asked for."""
    return sum(task.weight for task in build.tasks if task.algorithm == algorithm)


def misfit(algorithm: str, layers: int) -> str:
    """Says that no layer can have the form; '' where one has it, or any would do."""
    if layers or algorithm in _OF_EVERY_LAYER:
        return ""
    return f"no layer of the model has the form {algorithm} here"
