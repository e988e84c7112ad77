"""Takes a scheduled kernel apart: a function for each of its loop nests, which runs a share of it.

A kernel that TVM builds begins and ends a parallel loop by itself. Here each nest becomes a
function of the buffers that it uses, so that the launcher can put barriers where the model needs
them. What one nest writes and another reads becomes a buffer of the model.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize, Schedule, ScheduleError
from tvm.s_tir.analysis import estimate_tir_flops, get_sblock_access_region
from tvm.tirx import For, SeqStmt, Var

from tunegate.errors import UnsupportedModelError
from tunegate_whole_model.nests.independence import is_independent

_GLOBAL = ("", "global")
_LEAST_WORK = 60_000
"""Operations and elements below which a nest stays whole: they take about as long as a barrier."""
_ATTRIBUTES = {"tirx.noalias": True, "s_tir": True}


class Nest(NamedTuple):
    """One nest as a function. Its `arguments` are indices of buffers: the kernel's own, and then
    the shared ones; `reads` and `writes` refer to them. A nest of several blocks also takes the
    first block of its share, and the one behind the last."""

    function: Any
    arguments: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    blocks: int


class Kernel(NamedTuple):
    """The nests of a kernel in order, and the buffers between them."""

    nests: tuple[Nest, ...]
    shared: tuple[Any, ...]


def nests_of(function: Any) -> Kernel:
    """Returns the nests. Raises UnsupportedModelError for what is not a sequence of nests."""
    if not isinstance(function.body, SBlockRealize):
        raise UnsupportedModelError("a kernel is no sequence of loop nests")
    function = _without_single_iterations(function)
    root = function.body.block
    bodies = tuple(root.body.seq) if isinstance(root.body, SeqStmt) else (root.body,)
    everything = (*function.params, *root.alloc_buffers)
    accesses = [_accesses(body, everything) for body in bodies]
    shared = tuple(
        each for each in root.alloc_buffers if sum(a.touches(each) for a in accesses) > 1
    )
    if any(str(each.scope()) not in _GLOBAL for each in shared):
        raise UnsupportedModelError("loop nests share a buffer that is not in global memory")
    outside = (*function.params, *shared)
    own = tuple(each for each in root.alloc_buffers if not _has(shared, each))
    nests = (_nest(body, a, outside, own) for body, a in zip(bodies, accesses, strict=True))
    return Kernel(tuple(nests), shared)


class _Accesses(NamedTuple):
    reads: tuple[Any, ...]
    writes: tuple[Any, ...]

    def touches(self, buffer: Any) -> bool:
        return _has(self.reads, buffer) or _has(self.writes, buffer)


class _Share(NamedTuple):
    body: Any
    bounds: tuple[Any, ...]
    blocks: int


def _nest(body: Any, accesses: _Accesses, outside: Sequence[Any], own: Sequence[Any]) -> Nest:
    arguments = tuple(n for n, each in enumerate(outside) if accesses.touches(each))
    is_small = _work(body, [outside[n] for n in arguments]) < _LEAST_WORK
    share = _Share(body, (), 1) if is_small else _share(body)
    local = [each for each in own if accesses.touches(each)]
    root = SBlockRealize([], True, SBlock([], [], [], "root", share.body, None, local))
    made = tirx.PrimFunc([*(outside[n] for n in arguments), *share.bounds], root)
    for name, value in _ATTRIBUTES.items():
        made = made.with_attr(name, value)
    return Nest(
        function=made,
        arguments=arguments,
        reads=tuple(n for n in arguments if _has(accesses.reads, outside[n])),
        writes=tuple(n for n in arguments if _has(accesses.writes, outside[n])),
        blocks=share.blocks,
    )


def _share(body: Any) -> _Share:
    """Returns the nest with the bounds of its outermost loop as variables, if its iterations may
    run in parallel."""
    if not isinstance(body, For) or int(body.extent) == 1 or not _is_parallel(body):
        return _Share(body, (), 1)
    first, stop = (Var(name, "int64") for name in ("first", "stop"))
    kind = str(body.loop_var.ty)
    start, end = (each if kind == "int64" else tirx.Cast(kind, each) for each in (first, stop))
    loop = For(body.loop_var, start, end - start, tirx.ForKind.SERIAL, body.body)
    return _Share(loop, (first, stop), int(body.extent))


def _work(body: Any, buffers: Sequence[Any]) -> float:
    """Returns its operations, plus the elements of all buffers it uses."""
    elements = sum(math.prod(int(n) for n in each.shape) for each in buffers)
    return float(estimate_tir_flops(body)) + elements


def _is_parallel(loop: Any) -> bool:
    kind = int(loop.kind)
    return kind == tirx.ForKind.PARALLEL or (kind == tirx.ForKind.SERIAL and is_independent(loop))


def _without_single_iterations(function: Any) -> Any:
    """Returns the function without outermost single-iteration loops around another loop."""
    schedule = Schedule(tvm.IRModule({"main": function}))
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        outer = []
        for loop in schedule.get_loops(block):
            outer.append(loop)
            found = schedule.get(loop)
            if int(found.kind) != tirx.ForKind.SERIAL or int(found.extent) > 1:
                break
        if len(outer) > 1 and int(schedule.get(outer[-1]).kind) == tirx.ForKind.SERIAL:
            with contextlib.suppress(ScheduleError):  # the inner one has others beside it
                schedule.fuse(*outer)
    return schedule.mod["main"]


def _accesses(body: Any, everything: Sequence[Any]) -> _Accesses:
    block = SBlock([], [], [], "root", body)
    outside = {each: each for each in everything}
    reads, writes, opaque = get_sblock_access_region(block, outside)
    if opaque:
        raise UnsupportedModelError("a kernel reads or writes by address")
    return _Accesses(tuple(r.source for r in reads), tuple(r.source for r in writes))


def _has(buffers: Sequence[Any], buffer: Any) -> bool:
    return any(each.same_as(buffer) for each in buffers)
