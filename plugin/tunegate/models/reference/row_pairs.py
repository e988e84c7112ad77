"""Pairs the rows behind a sort with the reference's, to compare them as sets.

A detector picks its best rows by score. If nothing is detected, all scores are equal up to
rounding, so rounding decides their order and which rows are last. Equal rows in another order are
equal detections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from tunegate.models.reference.tolerance import is_numeric, tolerance
from tunegate.system.onnx_scan import bodies_of, nodes_of

_SORTS = frozenset({"TopK", "NonMaxSuppression"})
_MAX_ROWS = 2048
"""With more rows only their order is compared: each row is compared with every other."""
_MAX_SHARE = 0.25
"""The largest share of rows, from the end, that rounding may add or drop in the reference."""
Missing = Mapping[tuple[int, int], Any]
"""Boolean masks `[batch, rows]` of rows without an equal, by the shape of the table."""


def behind_a_sort(model: onnx.ModelProto) -> frozenset[str]:
    """Returns a model's outputs that are computed from what a sort selects."""
    selection: set[str] = set()
    for node in nodes_of(model):
        inside = (inner for body in bodies_of(node) for inner in body.node)
        is_sort = any(each.op_type in _SORTS for each in (node, *inside))
        if is_sort or not selection.isdisjoint(node.input):
            selection.update(name for name in node.output if name)
    return frozenset(value.name for value in model.graph.output if value.name in selection)


class RowPairs:
    """Rows of one inference paired with the reference's. Outputs with the same batch and number of
    rows form one table: a box, its score and its class stay together."""

    def __init__(
        self, names: Sequence[str], sorted_names: frozenset[str], expected: Sequence[Any]
    ) -> None:
        self._tables: dict[tuple[int, int], list[int]] = {}
        self._expected = expected
        for place, (name, value) in enumerate(zip(names, expected, strict=True)):
            shape = _table_of(value) if name in sorted_names else None
            if shape is not None:
                self._tables.setdefault(shape, []).append(place)

    def align(self, actual: Sequence[Any]) -> tuple[list[Any], Missing]:
        """Returns the outputs with rows in the reference's order, and which rows of each table have
        no equal there; those get the reference's values."""
        in_order, missing = list(actual), dict[tuple[int, int], Any]()
        for shape, places in self._tables.items():
            theirs = [self._expected[place] for place in places]
            ours = [actual[place] for place in places]
            if any(_misfit(one, other) for one, other in zip(ours, theirs, strict=True)):
                continue  # another shape or type is reported as such
            arrays = [np.array(array) for array in theirs]
            missing[shape] = np.zeros(shape, bool)
            for batch in range(shape[0]):
                pairs = _pairs(ours, theirs, shape, batch)
                is_paired = pairs >= 0
                missing[shape][batch] = ~is_paired
                for array, own in zip(arrays, ours, strict=True):
                    rows = _rows(array, shape)[batch]
                    rows[is_paired] = _rows(own, shape)[batch][pairs[is_paired]]
            for place, array in zip(places, arrays, strict=True):
                in_order[place] = array
        return in_order, missing


def may_be_missing(missing: Missing, of_variants: Sequence[Missing]) -> bool:
    """Returns whether rounding alone may explain missing rows. The reference's own variants lose
    some of its last rows; a build may lose twice as many, twice as far from the end. If most rows
    are rounding, none may: nothing would be compared."""
    for shape, mask in missing.items():
        variants = [shapes[shape] for shapes in of_variants if shape in shapes]
        for batch in np.flatnonzero(mask.any(axis=1)):
            unstable = [np.flatnonzero(variant[batch]) for variant in variants]
            most = max(map(len, unstable), default=0)
            depth = max((shape[1] - int(each[0]) for each in unstable if len(each)), default=0)
            places = np.flatnonzero(mask[batch])
            is_at_the_end = int(places[0]) >= shape[1] - 2 * depth
            if depth > _MAX_SHARE * shape[1] or len(places) > 2 * most or not is_at_the_end:
                return False
    return True


def _table_of(value: Any) -> tuple[int, int] | None:
    """Returns the batch and the number of rows of an output."""
    if not isinstance(value, np.ndarray) or not is_numeric(value) or not value.size:
        return None
    shape = (1, len(value)) if value.ndim == 1 else value.shape[:2]
    return (int(shape[0]), int(shape[1])) if value.ndim and 1 < shape[1] <= _MAX_ROWS else None


def _misfit(actual: Any, expected: Any) -> bool:
    return (
        not isinstance(actual, np.ndarray)
        or actual.shape != expected.shape
        or actual.dtype != expected.dtype
        or not bool(np.isfinite(expected.astype("float64")).all())
    )


def _rows(array: Any, shape: tuple[int, int]) -> Any:
    """Returns the array as a view of `[batch, rows, numbers]`."""
    return array.reshape(*shape, -1)


def _pairs(
    actual: Sequence[Any], expected: Sequence[Any], shape: tuple[int, int], batch: int
) -> np.ndarray:
    """Returns, for each row of the reference, the index of an equal row of ours, each used once; -1
    if there is none."""
    # Loads a part of SciPy that only these models need.
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import maximum_bipartite_matching  # noqa: PLC0415

    are_equal = np.ones((shape[1], shape[1]), bool)
    for one, other in zip(actual, expected, strict=True):
        wide = other.astype("float64")
        limit = tolerance(str(other.dtype)) * float(np.abs(wide).max())
        mine, right = (_rows(each.astype("float64"), shape)[batch] for each in (one, other))
        for column in range(right.shape[1]):
            with np.errstate(invalid="ignore"):
                off = np.abs(right[:, column, None] - mine[None, :, column])
            are_equal &= off <= limit
    columns: np.ndarray = maximum_bipartite_matching(csr_array(are_equal), perm_type="column")
    return columns
