"""Decides whether the iterations of a loop that is not marked as parallel may run in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tvm.s_tir import SBlockRealize
from tvm.tirx import AttrStmt, For, IntImm, SeqStmt


def is_independent(loop: Any) -> bool:
    """Returns whether each buffer written in the loop has an axis on which all its accesses are at
    the loop's variable: then no iteration touches what another writes."""
    blocks = list(_blocks(loop.body))
    if not blocks or any(block is None for block in blocks):
        return False
    written = [w.source for each in blocks for w in each.block.writes]
    return all(_is_apart(buffer, blocks, loop.loop_var) for buffer in written)


def _is_apart(buffer: Any, blocks: Sequence[Any], variable: Any) -> bool:
    axes = [
        {axis for axis, one in enumerate(region.region) if _is_at(one, realize, variable)}
        for realize in blocks
        for region in (*realize.block.reads, *realize.block.writes)
        if region.source.same_as(buffer)
    ]
    return bool(set.intersection(*axes))


def _is_at(range_: Any, realize: Any, variable: Any) -> bool:
    """Returns whether the range is one element, at an iterator that is bound to the variable."""
    bound = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    return (
        isinstance(range_.extent, IntImm)
        and int(range_.extent) == 1
        and any(
            range_.min.same_as(iterator.var) and value.same_as(variable)
            for iterator, value in bound
        )
    )


def _blocks(statement: Any) -> Iterator[Any]:
    """Yields the outermost blocks, and None for a statement that is none and may contain some."""
    match statement:
        case For() | AttrStmt():
            yield from _blocks(statement.body)
        case SeqStmt():
            for each in statement.seq:
                yield from _blocks(each)
        case SBlockRealize():
            yield statement
        case _:
            yield None
