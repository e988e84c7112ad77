"""LSTM, GRU and RNN, unrolled: one product for what all steps take from the input, then the steps
one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
import onnx

from tunegate.edges.metaschedule.importers.activations import Activation, activations_of, clipped
from tunegate.edges.metaschedule.importers.graph_view import (
    GraphView,
    TensorType,
    attribute,
    operand,
)
from tunegate.edges.metaschedule.importers.recurrent_cells import (
    CellStep,
    Gates,
    State,
    gru_step,
    lstm_step,
    rnn_step,
)
from tunegate.edges.metaschedule.importers.replacement import Replacement
from tunegate.errors import UnsupportedModelError

_MOST_STEPS = 256
"""The most of all directions together. Each is about three kernels to compile and to call."""


class _Kind(NamedTuple):
    gates: int
    step: CellStep
    activations: tuple[str, ...]


_KINDS = {
    "LSTM": _Kind(4, lstm_step, ("Sigmoid", "Tanh", "Tanh")),
    "GRU": _Kind(3, gru_step, ("Sigmoid", "Tanh")),
    "RNN": _Kind(1, rnn_step, ("Tanh",)),
}
_X, _W, _R, _BIAS, _LENGTHS, _HIDDEN, _CELL, _PEEPHOLES = range(8)


class _Extents(NamedTuple):
    steps: int
    batch: int
    inputs: int
    hidden: int


class _Direction(NamedTuple):
    """The names of what one direction has made: its outputs by step, and its last state."""

    outputs: list[str]
    last: State


def unrolled(node: onnx.NodeProto, view: GraphView) -> list[onnx.NodeProto] | None:
    """The nodes of an LSTM, GRU or RNN, or None where its extents or activations are not known.
    Raises UnsupportedModelError where it is too long."""
    kind = _KINDS[node.op_type]
    x, weights = view.type_of(node.input[_X]), view.type_of(node.input[_R])
    if x is None or weights is None or x.dtype != np.float32:
        return None
    directions, _, hidden = weights.shape
    activations = activations_of(node, kind.activations, directions)
    extents = _extents(x, hidden, is_batch_first=_is_batch_first(node))
    if activations is None or not extents.steps:
        return None
    if directions * extents.steps > _MOST_STEPS:
        steps = f"{extents.steps} steps" + (" in both directions" if directions > 1 else "")
        message = f"{node.op_type} over {steps} is too long: {_MOST_STEPS} are unrolled at the most"
        raise UnsupportedModelError(message)
    work = _Unrolling(node, view, kind, extents)
    each = len(kind.activations)
    ran = [
        work.direction(number, activations[number * each : (number + 1) * each])
        for number in range(directions)
    ]
    work.finish(ran)
    return work.new.nodes


def _is_batch_first(node: onnx.NodeProto) -> bool:
    return bool(attribute(node, "layout", 0))


def _extents(x: TensorType, hidden: int, *, is_batch_first: bool) -> _Extents:
    first, second, inputs = x.shape
    steps, batch = (second, first) if is_batch_first else (first, second)
    return _Extents(steps, batch, inputs, hidden)


class _Unrolling:
    """The nodes of one operator, as far as they are written."""

    def __init__(
        self, node: onnx.NodeProto, view: GraphView, kind: _Kind, extents: _Extents
    ) -> None:
        self.new = Replacement(node)
        self._node, self._kind, self._extents = node, kind, extents
        self._is_batch_first = _is_batch_first(node)
        self._x = self._flat_input()
        self._masks = self._masks_of(view)

    def direction(self, number: int, activations: Sequence[Activation]) -> _Direction:
        """Unrolls one direction."""
        gates, projection = self._gates(number, activations), self._projection(number)
        state = self._first_state(number)
        outputs = [""] * self._extents.steps
        for step in self._order(number):
            given = self._row(projection, step)
            made = self._kind.step(self.new, given, state, gates)
            outputs[step], state = self._masked(made, state, step)
        return _Direction(outputs, self._ended(state))

    def finish(self, ran: Sequence[_Direction]) -> None:
        """Writes the outputs of the node that are asked for."""
        new, size = self.new, self._extents
        names = [*self._node.output, "", "", ""][:3]
        if names[0]:
            shape = [1, 1, size.batch, size.hidden]
            steps = zip(*(one.outputs for one in ran), strict=True)
            rows = [new.reshaped(name, shape) for step in steps for name in step]
            ordered = new.add("Concat", rows, axis=0)
            whole = [size.steps, len(ran), size.batch, size.hidden]
            if self._is_batch_first:
                apart = new.reshaped(ordered, whole)
                new.add("Transpose", [apart], to=names[0], perm=[2, 0, 1, 3])
            else:
                new.reshaped(ordered, whole, to=names[0])
        for output, lasts in zip(
            names[1:], zip(*(one.last for one in ran), strict=True), strict=True
        ):
            if output:
                self._last(lasts, output)

    def _last(self, states: Sequence[str], output: str) -> None:
        size = self._extents
        one = [size.batch, 1] if self._is_batch_first else [1, size.batch]
        rows = [self.new.reshaped(state, [*one, size.hidden]) for state in states]
        self.new.add("Concat", rows, to=output, axis=1 if self._is_batch_first else 0)

    def _given(self, place: int) -> str:
        return operand(self._node, place)

    def _flat_input(self) -> str:
        """`[steps * batch, inputs]`."""
        x, size = self._node.input[_X], self._extents
        if self._is_batch_first:
            x = self.new.add("Transpose", [x], perm=[1, 0, 2])
        return self.new.reshaped(x, [size.steps * size.batch, size.inputs])

    def _of_direction(self, place: int, number: int) -> str:
        """`number` of the first axis of an input, without that axis."""
        index = self.new.constant(number, np.int64)
        return self.new.add("Gather", [self._node.input[place], index], axis=0)

    def _projection(self, number: int) -> str:
        """`[steps, batch, gates * hidden]`: what each step takes from the input, and the biases."""
        new, size = self.new, self._extents
        weights = new.add("Transpose", [self._of_direction(_W, number)], perm=[1, 0])
        product = new.add("MatMul", [self._x, weights])
        if self._given(_BIAS):
            of_input, of_state = self._biases(number)
            if self._scales_bias():
                zeros = np.zeros(size.hidden, np.float32)
                first = new.sliced(of_state, 0, 0, 2 * size.hidden)
                of_state = new.add("Concat", [first, new.constant(zeros)], axis=0)
            product = new.add("Add", [product, new.add("Add", [of_input, of_state])])
        return new.reshaped(product, [size.steps, size.batch, self._kind.gates * size.hidden])

    def _biases(self, number: int) -> tuple[str, str]:
        both, width = self._of_direction(_BIAS, number), self._kind.gates * self._extents.hidden
        return self.new.sliced(both, 0, 0, width), self.new.sliced(both, 0, width, 2 * width)

    def _scales_bias(self) -> bool:
        return bool(attribute(self._node, "linear_before_reset", 0))

    def _gates(self, number: int, activations: Sequence[Activation]) -> Gates:
        new, hidden = self.new, self._extents.hidden
        bias = ""
        if self._scales_bias():
            zeros = new.constant(np.zeros(hidden, np.float32))
            bias = zeros
            if self._given(_BIAS):
                bias = new.sliced(self._biases(number)[1], 0, 2 * hidden, 3 * hidden)
        peepholes: tuple[str, ...] = ()
        if self._given(_PEEPHOLES):
            every = self._of_direction(_PEEPHOLES, number)
            peepholes = tuple(
                new.sliced(every, 0, gate * hidden, (gate + 1) * hidden) for gate in range(3)
            )
        recurrent = new.add("Transpose", [self._of_direction(_R, number)], perm=[1, 0])
        is_coupled = bool(attribute(self._node, "input_forget", 0))
        behind = self._clipped(activations)
        return Gates(hidden, recurrent, bias, peepholes, is_coupled, behind)

    def _clipped(self, activations: Sequence[Activation]) -> list[Activation]:
        """The clip is before the gates, and not before what an LSTM's cell passes."""
        gates = 2 if self._node.op_type == "LSTM" else len(activations)
        behind = [clipped(self._node, activation) for activation in activations[:gates]]
        return [*behind, *activations[gates:]]

    def _first_state(self, number: int) -> State:
        is_lstm = self._node.op_type == "LSTM"
        cell = self._initial(_CELL, number) if is_lstm else ""
        return State(self._initial(_HIDDEN, number), cell)

    def _initial(self, place: int, number: int) -> str:
        size = self._extents
        if not self._given(place):
            return self.new.constant(np.zeros((size.batch, size.hidden), np.float32))
        axis = 1 if self._is_batch_first else 0
        index = self.new.constant(number, np.int64)
        return self.new.add("Gather", [self._node.input[place], index], axis=axis)

    def _order(self, number: int) -> Sequence[int]:
        steps = range(self._extents.steps)
        direction = cast("str", attribute(self._node, "direction", "forward"))
        return steps[::-1] if direction == "reverse" or number else steps

    def _row(self, projection: str, step: int) -> str:
        return self.new.add("Gather", [projection, self.new.constant(step, np.int64)], axis=0)

    def _masks_of(self, view: GraphView) -> list[str]:
        """Returns, for each step, which sequences of the batch are not over yet: `[batch, 1]`.
        Empty where all are as long as the input."""
        lengths, size = self._given(_LENGTHS), self._extents
        known = view.constant(lengths) if lengths else None
        if not lengths or (known is not None and bool((known == size.steps).all())):
            return []
        column = self.new.reshaped(lengths, [size.batch, 1])
        return [
            self.new.add("Less", [self.new.constant(step, np.int32), column])
            for step in range(size.steps)
        ]

    def _ended(self, state: State) -> State:
        """The last state. That of a sequence of no steps is zero, whatever it began with."""
        if not self._masks:
            return state
        zero = self.new.constant(0.0, np.float32)
        last = [
            self.new.add("Where", [self._masks[0], value, zero]) if value else "" for value in state
        ]
        return State(*last)

    def _masked(self, made: State, before: State, step: int) -> tuple[str, State]:
        """The output of a step and the state after it."""
        if not self._masks:
            return made.hidden, made
        new, mask = self.new, self._masks[step]
        zero = new.constant(0.0, np.float32)
        output = new.add("Where", [mask, made.hidden, zero])
        kept = [
            new.add("Where", [mask, after, old]) if after else ""
            for after, old in zip(made, before, strict=True)
        ]
        return output, State(*kept)
