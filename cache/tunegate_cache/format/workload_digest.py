"""The name-free identity of a tuning task, from the JSON object graph of its module.

Names, spans, node numbering and sharing do not count; every extent, dtype, operator and attribute
does. Two kinds of values do not count, because they come from a model's weights, which never change
a task: floating-point immediates (a learned scalar folded into the code), and 8- and 16-bit integer
immediates (zero points of quantization). Decisions are applied to the caller's own module, so even
a collision could only cost speed, never correctness.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

IsReference = Callable[[str, str], bool]
"""Returns whether an integer in the field of a type key is the index of another node."""

_WORKLOAD, _SKELETON = b"ms-wk1", b"ms-sk1"
_PROVENANCE = frozenset({"span", "source_map"})
_NAMES = {
    "ir.GlobalVar": "name_hint",
    "ir.Var": "name",
    "tirx.Var": "name",
    "tirx.SizeVar": "name",
    "s_tir.SBlock": "name_hint",
    "tirx.SBlock": "name_hint",
}
_MAX_STEPS = 2_000_000
"""A large function of a real model takes a few thousand steps."""
_ARRAYS = frozenset({"ffi.Array", "ffi.List"})
_MAPS = frozenset({"ffi.Map", "ffi.Dict"})
_NARROW = frozenset({"int8", "uint8", "int16", "uint16"})


class WorkloadIdentity(msgspec.Struct, frozen=True):
    """`workload` and `skeleton` are 64-digit SHA-256 digests; `extents` are the integer immediates
    above 1, which the skeleton leaves out, in walk order."""

    workload: str
    skeleton: str
    extents: tuple[int, ...]


class _Extent(msgspec.Struct, frozen=True):
    value: int


def workload_digest(graph: Mapping[str, Any], is_reference: IsReference) -> WorkloadIdentity:
    """Walks the graph once, and digests it with and without its extents. Raises ValueError for a
    graph whose walk does not end."""
    workload, skeleton = hashlib.sha256(_WORKLOAD), hashlib.sha256(_SKELETON)
    extents = []
    for token in _Walk(graph["nodes"], is_reference).tokens(int(graph["root_index"])):
        if isinstance(token, _Extent):
            extents.append(token.value)
            workload.update(b"%d\n" % token.value)
            skeleton.update(b"?\n")
        else:
            text = json.dumps(token).encode() + b"\n"
            workload.update(text)
            skeleton.update(text)
    return WorkloadIdentity(workload.hexdigest(), skeleton.hexdigest(), tuple(extents))


_Token = Any
"""A JSON scalar, a list of them, an extent, or a node still to be walked."""


class _Reference(msgspec.Struct, frozen=True):
    index: int


class _Walk:
    """A pre-order walk in which every node states how many parts follow, so that different trees
    never give the same tokens. A named node is a definition when first met, and a number
    afterwards."""

    def __init__(self, nodes: Sequence[Mapping[str, Any]], is_reference: IsReference) -> None:
        self._nodes = nodes
        self._is_reference = is_reference
        self._numbers: dict[int, int] = {}

    def tokens(self, root: int) -> Iterator[_Token]:
        # Not recursive: a concatenation's body is as deep as it has inputs.
        stack: list[_Token] = [_Reference(root)]
        for _ in range(_MAX_STEPS):
            if not stack:
                return
            part = stack.pop()
            if isinstance(part, _Reference):
                stack.extend(reversed(self._parts(part.index)))
            else:
                yield part
        raise ValueError(f"a walk of more than {_MAX_STEPS} steps: the graph has a cycle")

    def _parts(self, index: int) -> list[_Token]:
        node = self._nodes[index]
        kind: str = node["type"]
        content: _Token = node.get("data")
        if kind in _ARRAYS:
            return [["A", len(content)], *map(_Reference, content)]
        if kind in _MAPS:
            entries = self._sort_names(list(zip(content[0::2], content[1::2], strict=True)))
            return [["M", len(entries)], *(_Reference(i) for entry in entries for i in entry)]
        if not isinstance(content, Mapping):
            return [[kind, content]]
        if index in self._numbers:
            return [["R", self._numbers[index]]]
        return self._object(index, kind, content)

    def _sort_names(self, entries: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Sorts the entries of a map with names as keys, whose order means nothing."""
        if any(self._nodes[key]["type"] != "ffi.String" for key, _ in entries):
            return entries
        return sorted(entries, key=lambda entry: str(self._nodes[entry[0]]["data"]))

    def _object(self, index: int, kind: str, fields: Mapping[str, Any]) -> list[_Token]:
        if kind in _NAMES:
            self._numbers[index] = len(self._numbers)
        dropped = {*_PROVENANCE, _NAMES.get(kind)}
        names = sorted(fields.keys() - dropped)
        parts: list[_Token] = [[kind, *names]]
        for name in names:
            if name == "value" and kind == "ir.FloatImm":
                parts.append("?")
            elif name == "value" and kind == "ir.IntImm":
                parts.append(self._integer(fields))
            else:
                parts.append(self._field(kind, name, fields[name]))
        return parts

    def _field(self, kind: str, name: str, value: _Token) -> _Token:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return _Reference(value) if is_integer and self._is_reference(kind, name) else value

    def _integer(self, fields: Mapping[str, Any]) -> _Token:
        value = self._field("ir.IntImm", "value", fields["value"])
        while isinstance(value, _Reference):
            value = self._nodes[value.index]["data"]
        if self._dtype(fields) in _NARROW:
            return "?"
        return _Extent(value) if isinstance(value, int) and value > 1 else value

    def _dtype(self, fields: Mapping[str, Any]) -> str:
        """Returns the dtype of an immediate: from its type node, or beside its value."""
        if "dtype" in fields:
            return str(fields["dtype"])
        kind = self._nodes[fields["ty"]] if "ty" in fields else {}
        content = kind.get("data")
        return str(content.get("dtype")) if isinstance(content, Mapping) else ""
