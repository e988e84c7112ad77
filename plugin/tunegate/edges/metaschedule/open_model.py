"""A prepared model, opened for the compiler: its module and the kernels in it."""

from __future__ import annotations

from typing import Any, NamedTuple

from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.models.prepared import PreparedModel


class OpenModel(NamedTuple):
    """What listing the tasks and building have in common."""

    prepared: PreparedModel
    module: Any
    functions: list[ModelFunction]
