"""Sizes of dimensions that exporters name by a sum: `past_sequence_length + sequence_length`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

_LONGEST = 200
"""No exporter writes more; a long text is no sum."""
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def computed_size(symbol: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a dimension whose name is a sum of others', by `sizes` of these. None for another
    name, and for a sum of what is not known."""
    if len(symbol) > _LONGEST or symbol.isidentifier():
        return None
    try:
        term = ast.parse(symbol.strip(), mode="eval").body
        size = _value(term, sizes)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None
    least = 1 if isinstance(term, ast.Constant) else 0
    return size if size is not None and size >= least else None


def _value(term: ast.expr, sizes: Mapping[str, int]) -> int | None:
    match term:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return sizes.get(name)
        case ast.BinOp(left=left, op=kind, right=right):
            operation = _OPERATIONS.get(type(kind))
            ours, theirs = _value(left, sizes), _value(right, sizes)
            if operation is None or ours is None or theirs is None:
                return None
            return operation(ours, theirs)
        case _:
            return None
