"""The default schedule of a kernel, where no record has a better one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tvm.s_tir import dlight

from tunegate.edges.metaschedule.passes.asked_algorithm import with_asked_forms
from tunegate.edges.metaschedule.passes.group_vector_schedule import with_group_vectors
from tunegate.edges.metaschedule.passes.inlined_chains import with_inlined_chains
from tunegate.edges.metaschedule.passes.parallel_loops import with_parallel_loops
from tunegate.edges.metaschedule.passes.product_tiles import with_product_tiles
from tunegate.edges.metaschedule.passes.split_concatenations import with_split_choices
from tunegate.edges.metaschedule.passes.vector_accumulators import with_vector_accumulators
from tunegate.edges.metaschedule.targets import threads_of

DEFAULTS_VERSION = 5
"""Goes up with every change of these schedules: builds with other ones are other builds."""


def with_default_schedule(module: Any, target: Any) -> Any:
    """The module with a schedule for every kernel that has none. On CPUs the loops stay as they are
    written, but for choices, products, sums along the innermost one and chains, and the outermost
    are shared out to the threads. On a GPU they would not run at all: TVM's own rules for
    any kernel (DLight) bind the loops to its threads."""
    if str(target.kind.name) != "cuda":
        packing = with_packing_schedules(module, target)
        chains = with_inlined_chains(with_split_choices(packing))
        sums = with_vector_accumulators(chains, threads_of(target))
        return with_parallel_loops(sums, target)
    with target:
        return dlight.ApplyDefaultSchedule(
            dlight.gpu.Matmul(),
            dlight.gpu.GEMV(),
            dlight.gpu.Reduction(),
            dlight.gpu.GeneralReduction(),
            dlight.gpu.Fallback(),
        )(module.clone())  # it changes the module that it is given


def with_packing_schedules(module: Any, target: Any, leaves: Collection[str] = ()) -> Any:
    """The module with those of its default schedules that lay out constants: a build has them
    before it folds constants. Functions of the names that it `leaves` stay as they are."""
    if str(target.kind.name) == "cuda":
        return module
    return with_product_tiles(with_group_vectors(with_asked_forms(module), target), target, leaves)
