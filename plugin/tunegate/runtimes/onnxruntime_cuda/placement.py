"""Operators of a model that ONNX Runtime runs elsewhere than it was told to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from tunegate.errors import UnsupportedModelError
from tunegate.plurals import plural

_MOST_NAMED = 5


class PlacedNode(NamedTuple):
    """A node of the optimized graph: the provider that runs it, and its operator."""

    provider: str
    operator: str


def placed_nodes(session: Any) -> list[PlacedNode]:
    """Returns all nodes of a session that was told to record them."""
    return [
        PlacedNode(part.ep_name, node.op_type)
        for part in session.get_provider_graph_assignment_info()
        for node in part.get_nodes()
    ]


def told_of_placement(nodes: Iterable[PlacedNode], provider: str) -> str:
    """Says how many nodes another provider runs, and which operators they are; '' for none. Raises
    UnsupportedModelError where this one runs nothing."""
    every = list(nodes)
    away = Counter(node.operator for node in every if node.provider != provider)
    if not away:
        return ""
    count = away.total()
    if count == len(every):
        raise UnsupportedModelError("ONNX Runtime has none of its operators on the device")
    named = ", ".join(
        operator if times == 1 else f"{operator} ({times})"
        for operator, times in away.most_common(_MOST_NAMED)
    )
    more = ", ..." if len(away) > _MOST_NAMED else ""
    verb = "runs" if count == 1 else "run"
    return f"{count} of {plural(len(every), 'node')} {verb} on the CPU: {named}{more}"
