"""Loops that choose, for each number, which input it is from: asked once for many.

A concatenation along the innermost axis is such a loop, and LLVM puts none into vectors. Split
where the inputs meet, its inner part has no choice left; `light_squeezenet`'s concatenations are
six times faster for it (docs/benchmarks).
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm.ir import Call, Op
from tvm.s_tir import Schedule
from tvm.tirx import IntImm, IterVar, Select, Var
from tvm_ffi import structural_walk

from tunegate.edges.metaschedule.passes.unscheduled import with_unscheduled

_MAIN = "main"
_IF_THEN_ELSE = Op.get("prim.if_then_else")
_FEWEST = 4
"""A loop over less is not worth its own overhead."""


def with_split_choices(module: Any) -> Any:
    """The module, or a copy where it has such loops; what has a schedule is left alone."""
    return with_unscheduled(module, _split)


def _split(function: Any) -> Any | None:
    """The function split at its inputs, or None where there is nothing to split."""
    if not _conditions(function.body):
        return None
    schedule = Schedule(tvm.IRModule({_MAIN: function}))
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    runs = [(block, run) for block in blocks if (run := _run(schedule.get(block)))]
    for block, run in runs:
        schedule.split(schedule.get_loops(block)[-1], [None, run])
    return schedule.mod[_MAIN] if runs else None


def _run(block: Any) -> int | None:
    """The number of neighbours along its innermost axis for which a block makes the same choice, or
    None where it has none to split."""
    innermost = block.iter_vars[-1] if block.iter_vars else None
    if innermost is None or int(innermost.iter_type) != IterVar.DataPar:
        return None
    extent = innermost.dom.extent
    edges = [edge for each in _conditions(block.body) for edge in _edges(each, innermost.var)]
    if not edges or not isinstance(extent, IntImm):
        return None
    run = math.gcd(int(extent), *edges)
    return run if _FEWEST <= run < int(extent) else None


def _conditions(body: Any) -> list[Any]:
    calls = [call for call in _found(body, Call) if call.op.same_as(_IF_THEN_ELSE)]
    selects = _found(body, Select)
    return [call.args[0] for call in calls] + [select.condition for select in selects]


def _edges(condition: Any, axis: Any) -> list[int]:
    """Returns the places that the axis is compared with; none where the condition is about other
    axes."""
    if not any(variable.same_as(axis) for variable in _found(condition, Var)):
        return []
    return [int(number.value) for number in _found(condition, IntImm)]


def _found(root: Any, kind: type) -> list[Any]:
    nodes: list[Any] = []
    structural_walk(root, [(kind, nodes.append)])
    return nodes
