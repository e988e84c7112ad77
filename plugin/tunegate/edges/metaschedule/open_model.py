"""A prepared model, opened for the compiler: its module and the kernels in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.reuse.kernel_objects import KernelObjects
from tunegate.edges.metaschedule.reuse.known_schedules import KnownSchedules
from tunegate.edges.models.prepared import PreparedModel


@dataclass(frozen=True)
class OpenModel:
    """The shared state of listing the tasks and building. `objects` and `known` grow with each
    build."""

    prepared: PreparedModel
    module: Any
    functions: list[ModelFunction]
    objects: KernelObjects = field(default_factory=KernelObjects)
    known: KnownSchedules[Any] = field(default_factory=KnownSchedules)
