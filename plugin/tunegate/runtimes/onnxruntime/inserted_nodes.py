"""The layers that nodes belong to which ONNX Runtime's optimizer inserts, such as changes of
layout."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx

_BEFORE_ITS_LAYER = "ReorderInput"
_MAX_STEPS = 8


class InsertedNodes:
    """The optimized graph. `known` says what people call a node of it by its name and operator, ''
    for one that they do not know."""

    def __init__(self, nodes: Iterable[onnx.NodeProto], known: Callable[[str, str], str]) -> None:
        self._known = known
        self._named: dict[str, onnx.NodeProto] = {}
        self._makers: dict[str, onnx.NodeProto] = {}
        self._readers: dict[str, onnx.NodeProto] = {}
        for node in nodes:
            self._named[node.name] = node
            self._makers |= dict.fromkeys(node.output, node)
            for name in node.input:
                self._readers.setdefault(name, node)

    def layer_of(self, name: str) -> str:
        """The layer whose result the node changes, or the one that it prepares a value for; ''
        where neither is known."""
        node = self._named.get(name)
        if node is None:
            return ""
        steps = [self._before, self._after]
        if node.op_type == _BEFORE_ITS_LAYER:
            steps.reverse()
        return next(filter(None, (self._walked(node, step) for step in steps)), "")

    def _walked(
        self, node: onnx.NodeProto, step: Callable[[onnx.NodeProto], onnx.NodeProto | None]
    ) -> str:
        at: onnx.NodeProto | None = node
        for _ in range(_MAX_STEPS):
            at = step(at) if at is not None else None
            layer = self._known(at.name, at.op_type) if at is not None else ""
            if layer:
                return layer
        return ""

    def _before(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        return self._makers.get(node.input[0]) if node.input else None

    def _after(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        return self._readers.get(node.output[0]) if node.output else None
