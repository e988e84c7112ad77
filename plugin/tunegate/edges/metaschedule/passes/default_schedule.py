"""What a kernel is scheduled like where no record says better."""

from __future__ import annotations

from typing import Any

from tvm.s_tir import dlight

from tunegate.edges.metaschedule.passes.asked_algorithm import with_asked_forms
from tunegate.edges.metaschedule.passes.group_vector_schedule import with_group_vectors
from tunegate.edges.metaschedule.passes.split_concatenations import with_split_choices
from tunegate.edges.metaschedule.passes.vector_accumulators import with_vector_accumulators

DEFAULTS_VERSION = 3
"""Goes up with every change of these schedules: builds with other ones are other builds."""


def with_default_schedule(module: Any, target: Any) -> Any:
    """The module with a schedule for every kernel that has none. On CPUs the loops stay as they are
    written, but for choices, sums along the innermost one and grouped convolutions. On a GPU they
    would not run at all: TVM's own rules for any kernel (DLight) bind the loops to its threads."""
    if str(target.kind.name) != "cuda":
        packing = with_asked_forms(with_packing_schedules(module, target))
        return with_vector_accumulators(with_split_choices(packing))
    with target:
        return dlight.ApplyDefaultSchedule(
            dlight.gpu.Matmul(),
            dlight.gpu.GEMV(),
            dlight.gpu.Reduction(),
            dlight.gpu.GeneralReduction(),
            dlight.gpu.Fallback(),
        )(module.clone())  # it changes the module that it is given


def with_packing_schedules(module: Any, target: Any) -> Any:
    """The module with those of its default schedules that lay out constants: a build has them
    before it folds constants."""
    return module if str(target.kind.name) == "cuda" else with_group_vectors(module)
