"""A PrimFunc with canonical names, and its identity without names.

Traces name blocks, so block names are made canonical before tuning and look-up: a trace made from
one model then replays on the same function of another.
"""

import functools
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import tvm
from tvm_ffi import core

from tunegate_cache.format.records import WorkloadShape
from tunegate_cache.format.workload_digest import workload_digest

_INLINE_KINDS = frozenset({"int", "bool", "float"})
_CONTAINERS = frozenset({"ffi.Array", "ffi.List", "ffi.Map", "ffi.Dict"})


class Workload(msgspec.Struct, frozen=True):
    """`module` is an IRModule with one function, `main`, whose blocks are b0, b1, ..."""

    module: Any
    digest: str
    shape: WorkloadShape


def canonical_workload(function: Any) -> Workload:
    """Returns the workload of a PrimFunc, whatever the model called its blocks."""
    plain = function.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
    graph = json.loads(tvm.ir.save_json(tvm.IRModule({"main": plain})))
    _rename_blocks(graph)
    # This JSON was made by this process just now; nothing remote comes this way.
    module = tvm.ir.load_json(json.dumps(graph))
    identity = workload_digest(graph, is_reference)
    return Workload(module, identity.workload, WorkloadShape(identity.skeleton, identity.extents))


@functools.cache
def is_reference(type_key: str, field: str) -> bool:
    """Returns whether an integer field of a JSON object graph is a node index, by reflection."""
    kind = _field_kinds(type_key).get(field)
    return kind not in _INLINE_KINDS


@functools.cache
def _field_kinds(type_key: str) -> dict[str, str]:
    kinds: dict[str, str] = {}
    info: Any = core._lookup_or_register_type_info_from_type_key(type_key)
    while info is not None:
        for field in info.fields or ():
            schema = json.loads((field.metadata or {}).get("type_schema", "{}"))
            kinds.setdefault(field.name, str(schema.get("type", "")))
        info = info.parent_type_info
    return kinds


def _rename_blocks(graph: dict[str, Any]) -> None:
    nodes = graph["nodes"]
    for number, index in enumerate(_blocks(graph)):
        fields = nodes[index]["data"]
        if nodes[fields["name_hint"]]["data"] == "root":
            continue
        nodes.append({"type": "ffi.String", "data": f"b{number}"})
        fields["name_hint"] = len(nodes) - 1


def _blocks(graph: dict[str, Any]) -> Iterator[int]:
    nodes = graph["nodes"]
    visits: set[int] = set()
    stack = [graph["root_index"]]
    while stack:
        index = stack.pop()
        if index in visits:
            continue
        visits.add(index)
        if nodes[index]["type"] == "s_tir.SBlock":
            yield index
        stack.extend(reversed(_children(nodes[index])))


def _children(node: dict[str, Any]) -> list[int]:
    data = node.get("data")
    if isinstance(data, dict):
        return [
            value
            for field, value in sorted(data.items())
            if field != "span"
            and isinstance(value, int)
            and not isinstance(value, bool)
            and is_reference(node["type"], field)
        ]
    return list(data) if node["type"] in _CONTAINERS and isinstance(data, list) else []
