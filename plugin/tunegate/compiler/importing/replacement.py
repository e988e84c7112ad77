"""The nodes that stand for one node afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Replacement:
    """Collects nodes; what they are called begins with the first output of the node they replace,
    so that no two of a model are called the same."""

    def __init__(self, node: onnx.NodeProto) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self._prefix = node.name or next(name for name in node.output if name)
        self._unique = next(name for name in node.output if name)

    def add(
        self, operator: str, inputs: Sequence[str], *, to: str | None = None, **attributes: Any
    ) -> str:
        """Adds a node of one output, called `to`, and returns its name."""
        output = to or f"{self._unique}/{operator}{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(
                operator, inputs, [output], name=f"{self._prefix}/{len(self.nodes)}", **attributes
            )
        )
        return output

    def constant(self, value: Any, dtype: Any = None, *, to: str | None = None) -> str:
        """Adds a constant and returns its name."""
        tensor = numpy_helper.from_array(np.array(value, dtype))
        return self.add("Constant", [], to=to, value=tensor)

    def reshaped(self, value: str, shape: Sequence[int], *, to: str | None = None) -> str:
        """Adds a reshape to extents that are known."""
        is_empty = {"allowzero": 1} if 0 in shape else {}  # otherwise 0 keeps an extent
        return self.add("Reshape", [value, self.constant(shape, np.int64)], to=to, **is_empty)

    def cast(self, value: str, elements: int, *, to: str | None = None) -> str:
        """Adds a cast to a type, by its number in ONNX."""
        output = self.add("Cast", [value], to=to)
        self.nodes[-1].attribute.append(helper.make_attribute("to", elements))
        return output

    def sliced(self, value: str, axis: int, start: int, end: int) -> str:
        """Adds a slice of one axis."""
        bounds = [self.constant([number], np.int64) for number in (start, end, axis)]
        return self.add("Slice", [value, *bounds])
