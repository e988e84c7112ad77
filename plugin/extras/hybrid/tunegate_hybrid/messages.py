"""What is asked of the child that builds models in parts, and what it answers."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.candidates import RuntimeName
from tunegate.tune.compiler_protocol import (
    BuildModel,
    Built,
    CheckArtifact,
    Checked,
    ExportDatabase,
    Exported,
    Imported,
    ImportSchedules,
    ListTasks,
    Tasks,
)
from tunegate.tune.protocol import Failed


class BuildParts(msgspec.Struct, frozen=True, tag="parts", kw_only=True):
    """A `build` in parts for a `runtime`, run with so many threads. Which parts pay is measured,
    and kept in the directory `decided` for what has the same kernels. In `whole` lies the build
    that is compiled whole, '' for none. What an earlier run `elected` is cut without."""

    build: BuildModel
    runtime: RuntimeName
    threads: int
    decided: str
    whole: str = ""
    elected: bool = False


class NoParts(msgspec.Struct, frozen=True, tag="no-parts"):
    """The compiler takes the model whole, or nothing of it that is worth compiling."""


PartsRequest = ListTasks | BuildParts | CheckArtifact | ExportDatabase | ImportSchedules
"""The tasks, schedules and records of a model are those of its parts, where it has some."""
PartsReply = Tasks | Built | NoParts | Checked | Exported | Imported | Failed
