"""Unrolls Scan and Loop: the body, once for each step. An If becomes both of its branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view, recurrent
from tunegate.errors import UnsupportedModelError
from tunegate.system.onnx_scan import bodies_of, nodes_within


def unroll_scan(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Returns the steps of a Scan, None if their number is unknown. Raises UnsupportedModelError if
    they are too many."""
    trips, count = recurrent.trips_of(node, view), graph_view.attribute(node, "num_scan_inputs")
    if not trips:
        return None
    states, read = list(node.input[:-count]), node.input[-count:]
    axes = graph_view.attribute(node, "scan_input_axes", [0] * count)
    is_back = graph_view.attribute(node, "scan_input_directions", [0] * count)
    body, outputs = _Body(node, view, trips), []
    for step in range(trips):
        rows = [
            body.row(name, trips - 1 - step if back else step, axis)
            for name, axis, back in zip(read, axes, is_back, strict=True)
        ]
        body_outputs = body.run([*states, *rows])
        states, rest = body_outputs[: len(states)], body_outputs[len(states) :]
        outputs.append(rest)
    axes = graph_view.attribute(node, "scan_output_axes", [0] * len(outputs[0]))
    is_back = graph_view.attribute(node, "scan_output_directions", [0] * len(outputs[0]))
    body.finish(states, outputs, axes, is_back)
    return body.new.nodes


def unroll_loop(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Returns the steps of a Loop. Raises UnsupportedModelError if their number is not known before
    it runs, or if they are too many."""
    condition, trips = graph_view.operand(node, 1), recurrent.trips_of(node, view)
    is_on = view.constant(condition) if condition else np.ones(1)
    goes_on = is_on is not None and is_on.all() and _goes_on(graph_view.attribute(node, "body"))
    if not trips or not goes_on:
        raise UnsupportedModelError(
            "its number of iterations is not a constant of the model, or is 0"
        )
    states, body, outputs = list(node.input[2:]), _Body(node, view, trips), []
    true = body.new.constant(True, np.bool_)
    for step in range(trips):
        _, *body_outputs = body.run([body.new.constant(step, np.int64), true, *states])
        states, rest = body_outputs[: len(states)], body_outputs[len(states) :]
        outputs.append(rest)
    body.finish(states, outputs, [0] * len(outputs[0]), [0] * len(outputs[0]))
    return body.new.nodes


def _goes_on(body: onnx.GraphProto) -> bool:
    """Returns whether the condition that a Loop's body gives is the one that it got, or true."""
    name = body.output[0].name
    producer = {output: each for each in body.node for output in each.output}
    while name in producer and producer[name].op_type == "Identity":
        name = producer[name].input[0]
    initializer = next((each for each in body.initializer if each.name == name), None)
    if name in producer and producer[name].op_type == "Constant":
        initializer = graph_view.attribute(producer[name], "value")
    return name == body.input[1].name or (
        initializer is not None and bool(onnx.numpy_helper.to_array(initializer).all())
    )


class _Body:
    """The steps of a Scan or Loop, as far as they are built."""

    def __init__(self, node: onnx.NodeProto, view: graph_view.GraphView, trips: int) -> None:
        self.new, self._node = graph_view.Replacement(node), node
        self._graph: onnx.GraphProto = graph_view.attribute(node, "body")
        if recurrent.steps_in(view) > recurrent.MOST_STEPS:
            size = len(self._graph.node)
            message = f"its {trips:,} steps of {size:,} operators are too many to unroll"
            raise UnsupportedModelError(message)
        if any(map(bodies_of, self._graph.node)):
            message = "an operator in its body has a body of its own"
            raise UnsupportedModelError(message)
        self._constants = {
            each.name: self.new.add("Constant", [], value=each) for each in self._graph.initializer
        }

    def row(self, name: str, place: int, axis: int) -> str:
        """Returns the part of an input that a step of a Scan reads."""
        return self.new.add("Gather", [name, self.new.constant(place, np.int64)], axis=axis)

    def run(self, operands: Sequence[str]) -> list[str]:
        """Adds the nodes of a step, and returns the names of what it gives."""
        inputs = (value.name for value in self._graph.input)
        names = self._constants | dict(zip(inputs, operands, strict=True))
        for node in self._graph.node:
            self.new.copy(node, names)
        return [names.get(value.name, value.name) for value in self._graph.output]

    def finish(
        self,
        states: Sequence[str],
        step_outputs: Sequence[Sequence[str]],
        axes: Sequence[int],
        is_back: Sequence[int],
    ) -> None:
        """Adds the outputs of the node: the last states, and what each step wrote, in order."""
        new, outputs = self.new, self._node.output
        for name, output in zip(states, outputs, strict=False):
            if output:
                new.add("Identity", [name], to=output)
        columns = zip(*step_outputs, strict=True)
        for column, axis, back, output in zip(
            columns, axes, is_back, outputs[len(states) :], strict=False
        ):
            if output:
                place = new.constant([axis], np.int64)
                rows = [new.add("Unsqueeze", [name, place]) for name in column]
                new.add("Concat", rows[::-1] if back else rows, to=output, axis=axis)


# If: both branches beside what is around them, and a choice of each output. So kernels fuse in and
# around the branches. A build runs one of them only (`compiler/opening.py`).

BRANCHED = "/If"
"""The end of the name of a Where that stands for an If: its operands have one shape."""


def merge_branches(node: onnx.NodeProto, view: graph_view.GraphView) -> list[onnx.NodeProto] | None:
    """Returns both branches of an If, those of each If in them too, and a Where for each output;
    None if a branch has another body."""
    inner = nodes_within(*(body.node for body in bodies_of(node)))
    if any(each.op_type != "If" and bodies_of(each) for each in inner):
        return None
    new = graph_view.Replacement(node)
    _add_choices(new, node, {}, view, dict(zip(node.output, node.output, strict=True)))
    return new.nodes


def _add_choices(
    new: graph_view.Replacement,
    node: onnx.NodeProto,
    names: dict[str, str],
    view: graph_view.GraphView,
    results: Mapping[str, str],
) -> None:
    """Adds the branches, and a choice of each output. `names` has the new names of what they read,
    and gets those of the outputs: those in `results`, or others."""
    condition = names.get(node.input[0], node.input[0])
    kind = view.type_of(condition)
    if kind is None or kind.shape:
        condition = new.add_reshape(condition, [])
    branches = [graph_view.attribute(node, name) for name in ("then_branch", "else_branch")]
    branch_outputs = [_branch(new, branch, names, view) for branch in branches]
    label = node.name or next(name for name in node.output if name)
    for output, *values in zip(node.output, *branch_outputs, strict=True):
        if output:
            choice = new.add("Where", [condition, *values], to=results.get(output))
            new.nodes[-1].name = f"{label}/{len(new.nodes)}{BRANCHED}"
            names[output] = choice


def _branch(
    new: graph_view.Replacement,
    branch: onnx.GraphProto,
    around: Mapping[str, str],
    view: graph_view.GraphView,
) -> list[str]:
    """Adds the nodes of a branch, and returns the names of what it gives."""
    weights = {each.name: new.add("Constant", [], value=each) for each in branch.initializer}
    names = {**around, **weights}
    for node in branch.node:
        if node.op_type == "If":
            _add_choices(new, node, names, view, {})
            continue
        new.copy(node, names)
        new.nodes[-1].name = node.name or new.nodes[-1].name
    return [names.get(value.name, value.name) for value in branch.output]
