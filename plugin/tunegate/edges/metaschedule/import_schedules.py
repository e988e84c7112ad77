"""Foreign schedules as decisions under our own templates. Runs in a child.

A foreign trace is compared as data with the templates that our own module has here; what is applied
is our template with its integers, which must come out of TVM unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tvm.s_tir import meta_schedule as ms

from tunegate.artifacts.foreign_schedules import ForeignSchedule, ImportedSchedule
from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.space import DesignSpace
from tunegate.edges.metaschedule.targets import ResolvedTarget
from tunegate.edges.metaschedule.trace_signature import trace_signature
from tunegate.edges.metaschedule.variants.algorithm_variants import DIRECT
from tunegate.engine.protocol import Schedule
from tunegate_cache.format.records import WorkloadKey

_MAX_OF_EACH = 4


def import_schedules(
    functions: Sequence[ModelFunction],
    foreign: Sequence[ForeignSchedule],
    target: ResolvedTarget,
) -> Iterator[ImportedSchedule]:
    """Yields, for each workload, the fastest few schedules (by their claims) that
    fit one of its templates exactly."""
    ranked = sorted(enumerate(foreign), key=lambda numbered: numbered[1].median_ms)
    for function in {f.workload.digest: f for f in functions}.values():
        arguments = _arguments(function.workload.module)
        same = [(n, s) for n, s in ranked if s.arguments == arguments]
        if same:
            space = DesignSpace(function.workload, target.target)
            key = WorkloadKey(function.workload.digest, target.key)
            yield from _fitting(space, key, same)


def _fitting(
    space: DesignSpace, key: WorkloadKey, ranked: Sequence[tuple[int, ForeignSchedule]]
) -> Iterator[ImportedSchedule]:
    found: set[Schedule] = set()
    for number, foreign in ranked:
        for schedule in _as_ours(space, foreign):
            if schedule not in found and space.reproduces(schedule):
                found.add(schedule)
                yield ImportedSchedule(
                    number=number,
                    key=key,
                    template=schedule.template,
                    decisions=schedule.decisions,
                )
        if len(found) >= _MAX_OF_EACH:
            return


def _as_ours(space: DesignSpace, foreign: ForeignSchedule) -> Iterator[Schedule]:
    """Two of our templates may differ in names alone; then both are tried."""
    theirs = trace_signature(foreign.instructions, space.pure_kinds)
    decisions = theirs.moved(foreign.decisions)
    for digest, template in space.templates.items():
        if template.signature == theirs.text and template.variant.name == DIRECT:
            yield Schedule(digest, decisions)


def _arguments(module: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    found = ms.arg_info.ArgInfo.from_prim_func(module["main"])
    return tuple((str(a.dtype), tuple(int(n) for n in a.shape)) for a in found)
