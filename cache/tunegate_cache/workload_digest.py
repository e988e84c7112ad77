"""The name-free identity of a tuning task, from the JSON object graph of its module.

Names, spans and node numbering do not count; every extent, dtype, operator and attribute does. The
values of floating-point immediates do not: a learned scalar that the compiler folded into the code
is a weight, and weights never change a task. Decisions are applied to the caller's own module, so
even a collision could only cost speed, never correctness.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Form = Any
"""A canonical form: nested lists of strings, numbers and None, as JSON has them."""

IsReference = Callable[[str, str], bool]
"""(type key, field) -> whether an integer in that field is the number of another node."""

_PREFIX = b"ms-wk1"
_SKELETON_PREFIX = b"ms-sk1"
_PROVENANCE = frozenset({"span", "source_map"})
_NAMES = {
    "ir.GlobalVar": "name_hint",
    "ir.Var": "name",
    "tirx.Var": "name",
    "s_tir.SBlock": "name_hint",
    "tirx.SBlock": "name_hint",
}
_ARRAYS = frozenset({"ffi.Array", "ffi.List"})
_MAPS = frozenset({"ffi.Map", "ffi.Dict"})
_EXTENT = "ir.IntImm"
_FLOAT = "ir.FloatImm"


class WorkloadIdentity(msgspec.Struct, frozen=True):
    """`workload` and `skeleton` are 64-digit sha-256 digests; `extents` are the integers above 1
    that the skeleton leaves out, in the order of the walk."""

    workload: str
    skeleton: str
    extents: tuple[int, ...]


def digest(graph: Mapping[str, Any], is_reference: IsReference) -> WorkloadIdentity:
    """Walk the graph once and digest it with and without its extents."""
    walk = _Walk(graph["nodes"], is_reference)
    form = walk.visit(int(graph["root_index"]))
    text = json.dumps(form, separators=(",", ":")).encode()
    skeleton = json.dumps(_without_extents(form), separators=(",", ":")).encode()
    return WorkloadIdentity(
        hashlib.sha256(_PREFIX + text).hexdigest(),
        hashlib.sha256(_SKELETON_PREFIX + skeleton).hexdigest(),
        tuple(_extents(form)),
    )


class _Walk:
    """One canonical walk; a named node is a definition when first met and a number afterwards."""

    def __init__(self, nodes: list[dict[str, Any]], is_reference: IsReference) -> None:
        self._nodes = nodes
        self._is_reference = is_reference
        self._numbers: dict[int, int] = {}

    def visit(self, index: int) -> Form:
        node = self._nodes[index]
        kind: str = node["type"]
        content: Form = node.get("data")
        if kind in _ARRAYS:
            return ["A", *(self.visit(i) for i in content)]
        if kind in _MAPS:
            pairs = zip(content[0::2], content[1::2], strict=True)
            entries = [[self.visit(key), self.visit(value)] for key, value in pairs]
            return ["M", *sorted(entries, key=lambda e: json.dumps(e[0]))]
        if not isinstance(content, dict):
            return [kind, content]
        return self._object(index, kind, content)

    def _object(self, index: int, kind: str, fields: dict[str, Any]) -> Form:
        name = _NAMES.get(kind)
        if name is not None:
            if index in self._numbers:
                return ["R", self._numbers[index]]
            self._numbers[index] = len(self._numbers)
        if kind == _EXTENT:
            return self._integer(fields)
        form: list[Any] = [kind]
        for field in sorted(fields.keys() - _PROVENANCE):
            if field == name or (kind == _FLOAT and field == "value"):
                continue
            form.append([field, self._field(kind, field, fields[field])])
        return form

    def _field(self, kind: str, field: str, value: Form) -> Form:
        plain_integer = isinstance(value, int) and not isinstance(value, bool)
        if plain_integer and self._is_reference(kind, field):
            return self.visit(value)
        return value

    def _integer(self, fields: dict[str, Any]) -> Form:
        value = self._field(_EXTENT, "value", fields["value"])
        while isinstance(value, list):
            value = value[-1]
        return ["I", self._field(_EXTENT, "ty", fields.get("ty")), value]


def _without_extents(form: Form) -> Form:
    if not isinstance(form, list):
        return form
    if form and form[0] == "I" and isinstance(form[-1], int) and form[-1] > 1:
        return ["I", form[1], "?"]
    return [_without_extents(part) for part in form]


def _extents(form: Form) -> list[int]:
    found: list[int] = []
    stack = [form]
    while stack:
        part = stack.pop()
        if not isinstance(part, list):
            continue
        if part and part[0] == "I":
            if isinstance(part[-1], int) and part[-1] > 1:
                found.append(part[-1])
            continue
        stack.extend(reversed(part))
    return found
