"""Unrolls LSTM, GRU and RNN: one product of the input for all steps, then the steps in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import onnx

from tunegate.compiler.importing import graph_view
from tunegate.errors import UnsupportedModelError

# One step of an LSTM, a GRU and an RNN, in operators. The gate weights are one matrix.


class Gates(NamedTuple):
    """The gates of one direction. `recurrent` is `[hidden, gates * hidden]`; `peepholes` follow the
    gates' order and may be empty. `recurrent_bias` is the last GRU gate's if the reset gate scales
    it, and empty if the projection contains the bias."""

    hidden: int
    recurrent: str
    recurrent_bias: str
    peepholes: tuple[str, ...]
    is_coupled: bool
    """True where the forget gate is 1 - input gate."""
    activations: Sequence[Activation]


class State(NamedTuple):
    """The state between steps; only an LSTM has a `cell`."""

    hidden: str
    cell: str = ""


CellStep = Callable[[graph_view.Replacement, str, State, Gates], State]
"""Takes the projection of the step's input, `[batch, gates * hidden]`."""


def lstm_step(new: graph_view.Replacement, projection: str, before: State, gates: Gates) -> State:
    """Returns the next LSTM state. Gates in order: input, output, forget, cell."""
    gate, candidate, outward = gates.activations
    sums = new.add("Add", [projection, new.add("MatMul", [before.hidden, gates.recurrent])])
    into, out, forget, proposal = _gates(new, sums, gates.hidden, 4)
    peepholes = gates.peepholes or ("", "", "")
    let_in = gate(new, _add_peephole(new, into, before.cell, peepholes[0]))
    if gates.is_coupled:
        share = new.add("Sub", [new.constant(1.0, np.float32), let_in])
    else:
        share = gate(new, _add_peephole(new, forget, before.cell, peepholes[2]))
    old = new.add("Mul", [share, before.cell])
    cell = new.add("Add", [old, new.add("Mul", [let_in, candidate(new, proposal)])])
    let_out = gate(new, _add_peephole(new, out, cell, peepholes[1]))
    return State(new.add("Mul", [let_out, outward(new, cell)]), cell)


def gru_step(new: graph_view.Replacement, projection: str, before: State, gates: Gates) -> State:
    """Returns the next GRU state. Gates in order: update, reset, hidden."""
    gate, candidate = gates.activations
    size = gates.hidden
    from_input = _gates(new, projection, size, 3)
    if gates.recurrent_bias:  # the reset gate scales what the product gives, bias included
        own = _gates(new, new.add("MatMul", [before.hidden, gates.recurrent]), size, 3)
        reset = gate(new, new.add("Add", [from_input[1], own[1]]))
        from_state = new.add("Mul", [reset, new.add("Add", [own[2], gates.recurrent_bias])])
    else:
        first = new.add_slice(gates.recurrent, 1, 0, 2 * size)
        own = _gates(new, new.add("MatMul", [before.hidden, first]), size, 2)
        reset = gate(new, new.add("Add", [from_input[1], own[1]]))
        last = new.add_slice(gates.recurrent, 1, 2 * size, 3 * size)
        from_state = new.add("MatMul", [new.add("Mul", [reset, before.hidden]), last])
    update = gate(new, new.add("Add", [from_input[0], own[0]]))
    proposal = candidate(new, new.add("Add", [from_input[2], from_state]))
    rest = new.add("Sub", [new.constant(1.0, np.float32), update])
    old = new.add("Mul", [update, before.hidden])
    return State(new.add("Add", [new.add("Mul", [rest, proposal]), old]))


def rnn_step(new: graph_view.Replacement, projection: str, before: State, gates: Gates) -> State:
    """Returns the next RNN state."""
    (activation,) = gates.activations
    own = new.add("MatMul", [before.hidden, gates.recurrent])
    return State(activation(new, new.add("Add", [projection, own])))


def _gates(new: graph_view.Replacement, sums: str, size: int, count: int) -> list[str]:
    return [new.add_slice(sums, 1, number * size, (number + 1) * size) for number in range(count)]


def _add_peephole(new: graph_view.Replacement, sums: str, cell: str, peephole: str) -> str:
    if not peephole:
        return sums
    return new.add("Add", [sums, new.add("Mul", [peephole, cell])])


# The operator: its input's product for all steps at once, then the steps of each direction in
# order, and its outputs put together from theirs.

MOST_STEPS = 32
"""The most steps in one model, over all recurrences and directions. Each step takes a third of a
second to import and adds about three kernels; longer recurrences, unrolled and tuned, were slower
than ONNX Runtime's own."""
_OPERATORS_OF_STEP = 20
"""About as many as a step of an LSTM becomes."""


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
    """The value names that one direction produced: its output per step, and its last state."""

    outputs: list[str]
    last: State


def unroll_recurrent(
    node: onnx.NodeProto, view: graph_view.GraphView
) -> list[onnx.NodeProto] | None:
    """Returns the nodes of an LSTM, GRU or RNN, None if its extents or activations are unknown.
    Raises UnsupportedModelError if it is too long."""
    kind = _KINDS[node.op_type]
    x, weights = view.type_of(node.input[_X]), view.type_of(node.input[_R])
    if x is None or weights is None or x.dtype != np.float32:
        return None
    directions, _, hidden = weights.shape
    activations = activations_of(node, kind.activations, directions)
    extents = _extents(x, hidden, is_batch_first=_is_batch_first(node))
    if activations is None or not extents.steps:
        return None
    steps = steps_in(view)
    if steps > MOST_STEPS:
        raise UnsupportedModelError(_too_long(extents.steps, directions, steps))
    work = _Unrolling(node, view, kind, extents)
    each = len(kind.activations)
    ran = [
        work.direction(number, activations[number * each : (number + 1) * each])
        for number in range(directions)
    ]
    work.finish(ran)
    return work.new.nodes


def _too_long(own: int, directions: int, steps: int) -> str:
    both = " in both directions" if directions > 1 else ""
    together = f", {steps} with the model's others" if steps > own * directions else ""
    return f"its {own} steps{both}{together} are too many, as {MOST_STEPS} are unrolled at the most"


def steps_in(view: graph_view.GraphView) -> int:
    """Returns the steps of all recurrences. One of a Scan or Loop counts by its body's size."""
    total = 0
    for node in view.nodes:
        body = graph_view.attribute(node, "body")
        if node.op_type in _KINDS:
            total += _steps_of(node, view)
        elif isinstance(body, onnx.GraphProto):  # Scan or Loop
            total += trips_of(node, view) * (1 + len(body.node) // _OPERATORS_OF_STEP)
    return total


def trips_of(node: onnx.NodeProto, view: graph_view.GraphView) -> int:
    """Returns the steps of a Scan or Loop, 0 if unknown."""
    if node.op_type == "Loop":
        trips = view.constant(graph_view.operand(node, 0))
        return 0 if trips is None else max(0, int(trips.flat[0]))
    kind = view.type_of(node.input[-graph_view.attribute(node, "num_scan_inputs")])
    return 0 if kind is None else kind.shape[graph_view.attribute(node, "scan_input_axes", [0])[0]]


def _steps_of(node: onnx.NodeProto, view: graph_view.GraphView) -> int:
    """Returns the steps of all directions, 0 if unknown."""
    x, weights = view.type_of(node.input[_X]), view.type_of(node.input[_R])
    if x is None or weights is None or x.rank != 3:  # noqa: PLR2004 -- steps, batch and inputs
        return 0
    return weights.shape[0] * _extents(x, 0, is_batch_first=_is_batch_first(node)).steps


def _is_batch_first(node: onnx.NodeProto) -> bool:
    return bool(graph_view.attribute(node, "layout", 0))


def _extents(x: graph_view.TensorType, hidden: int, *, is_batch_first: bool) -> _Extents:
    first, second, inputs = x.shape
    steps, batch = (second, first) if is_batch_first else (first, second)
    return _Extents(steps, batch, inputs, hidden)


class _Unrolling:
    """The nodes of one operator, as far as they are built."""

    def __init__(
        self, node: onnx.NodeProto, view: graph_view.GraphView, kind: _Kind, extents: _Extents
    ) -> None:
        self.new = graph_view.Replacement(node)
        self._node, self._kind, self._extents = node, kind, extents
        self._is_batch_first = _is_batch_first(node)
        self._x = self._flat_input()
        self._masks = self._masks_of(view)

    def direction(self, number: int, activations: Sequence[Activation]) -> _Direction:
        """Unrolls one direction."""
        gates, projection = self._gates(number, activations), self._projection(number)
        cell = self._initial(_CELL, number) if self._node.op_type == "LSTM" else ""
        state = State(self._initial(_HIDDEN, number), cell)
        outputs = [""] * self._extents.steps
        for step in self._order(number):
            row = self.new.add("Gather", [projection, self.new.constant(step, np.int64)], axis=0)
            step_outputs = self._kind.step(self.new, row, state, gates)
            outputs[step], state = self._mask_step(step_outputs, state, step)
        return _Direction(outputs, self._last_state(state))

    def finish(self, ran: Sequence[_Direction]) -> None:
        """Adds the requested outputs of the node."""
        new, size = self.new, self._extents
        names = [*self._node.output, "", "", ""][:3]
        if names[0]:
            shape = [1, 1, size.batch, size.hidden]
            steps = zip(*(one.outputs for one in ran), strict=True)
            rows = [new.add_reshape(name, shape) for step in steps for name in step]
            sequence = new.add("Concat", rows, axis=0)
            whole = [size.steps, len(ran), size.batch, size.hidden]
            if self._is_batch_first:
                apart = new.add_reshape(sequence, whole)
                new.add("Transpose", [apart], to=names[0], perm=[2, 0, 1, 3])
            else:
                new.add_reshape(sequence, whole, to=names[0])
        for output, lasts in zip(
            names[1:], zip(*(one.last for one in ran), strict=True), strict=True
        ):
            if output:
                self._add_last_state(lasts, output)

    def _add_last_state(self, states: Sequence[str], output: str) -> None:
        size = self._extents
        one = [size.batch, 1] if self._is_batch_first else [1, size.batch]
        rows = [self.new.add_reshape(state, [*one, size.hidden]) for state in states]
        self.new.add("Concat", rows, to=output, axis=1 if self._is_batch_first else 0)

    def _input(self, place: int) -> str:
        return graph_view.operand(self._node, place)

    def _flat_input(self) -> str:
        """Returns the input as `[steps * batch, inputs]`."""
        x, size = self._node.input[_X], self._extents
        if self._is_batch_first:
            x = self.new.add("Transpose", [x], perm=[1, 0, 2])
        return self.new.add_reshape(x, [size.steps * size.batch, size.inputs])

    def _direction_slice(self, place: int, number: int, axis: int = 0) -> str:
        """Returns one direction's slice of an input: entry `number` of an axis."""
        index = self.new.constant(number, np.int64)
        return self.new.add("Gather", [self._node.input[place], index], axis=axis)

    def _projection(self, number: int) -> str:
        """Returns the inputs' products plus biases, `[steps, batch, gates * hidden]`."""
        new, size = self.new, self._extents
        weights = new.add("Transpose", [self._direction_slice(_W, number)], perm=[1, 0])
        product = new.add("MatMul", [self._x, weights])
        if self._input(_BIAS):
            of_input, of_state = self._biases(number)
            if self._scales_bias():
                zeros = np.zeros(size.hidden, np.float32)
                first = new.add_slice(of_state, 0, 0, 2 * size.hidden)
                of_state = new.add("Concat", [first, new.constant(zeros)], axis=0)
            product = new.add("Add", [product, new.add("Add", [of_input, of_state])])
        return new.add_reshape(product, [size.steps, size.batch, self._kind.gates * size.hidden])

    def _biases(self, number: int) -> tuple[str, str]:
        both, width = self._direction_slice(_BIAS, number), self._kind.gates * self._extents.hidden
        return self.new.add_slice(both, 0, 0, width), self.new.add_slice(both, 0, width, 2 * width)

    def _scales_bias(self) -> bool:
        return bool(graph_view.attribute(self._node, "linear_before_reset", 0))

    def _gates(self, number: int, activations: Sequence[Activation]) -> Gates:
        new, hidden = self.new, self._extents.hidden
        bias = ""
        if self._scales_bias():
            bias = new.constant(np.zeros(hidden, np.float32))
            if self._input(_BIAS):
                bias = new.add_slice(self._biases(number)[1], 0, 2 * hidden, 3 * hidden)
        peepholes: tuple[str, ...] = ()
        if self._input(_PEEPHOLES):
            every = self._direction_slice(_PEEPHOLES, number)
            peepholes = tuple(
                new.add_slice(every, 0, gate * hidden, (gate + 1) * hidden) for gate in range(3)
            )
        recurrent = new.add("Transpose", [self._direction_slice(_R, number)], perm=[1, 0])
        is_coupled = bool(graph_view.attribute(self._node, "input_forget", 0))
        behind = self._clip_gates(activations)
        return Gates(hidden, recurrent, bias, peepholes, is_coupled, behind)

    def _clip_gates(self, activations: Sequence[Activation]) -> list[Activation]:
        """Clips the gates' activations, but not the output activation of an LSTM cell."""
        gates = 2 if self._node.op_type == "LSTM" else len(activations)
        behind = [clip_before(self._node, activation) for activation in activations[:gates]]
        return [*behind, *activations[gates:]]

    def _initial(self, place: int, number: int) -> str:
        size = self._extents
        if not self._input(place):
            return self.new.constant(np.zeros((size.batch, size.hidden), np.float32))
        return self._direction_slice(place, number, 1 if self._is_batch_first else 0)

    def _order(self, number: int) -> Sequence[int]:
        steps = range(self._extents.steps)
        direction = cast("str", graph_view.attribute(self._node, "direction", "forward"))
        return steps[::-1] if direction == "reverse" or number else steps

    def _masks_of(self, view: graph_view.GraphView) -> list[str]:
        """Returns a mask per step of the sequences that are not over yet, `[batch, 1]`; empty if
        all are as long as the input."""
        lengths, size = self._input(_LENGTHS), self._extents
        constant = view.constant(lengths) if lengths else None
        if not lengths or (constant is not None and bool((constant == size.steps).all())):
            return []
        column = self.new.add_reshape(lengths, [size.batch, 1])
        return [
            self.new.add("Less", [self.new.constant(step, np.int32), column])
            for step in range(size.steps)
        ]

    def _last_state(self, state: State) -> State:
        """Returns the last state. It is zero for a sequence without steps, whatever its initial
        state."""
        if not self._masks:
            return state
        zero = self.new.constant(0.0, np.float32)
        last = [
            self.new.add("Where", [self._masks[0], value, zero]) if value else "" for value in state
        ]
        return State(*last)

    def _mask_step(self, state: State, before: State, step: int) -> tuple[str, State]:
        """Returns the output of a step and the state after it."""
        if not self._masks:
            return state.hidden, state
        new, mask = self.new, self._masks[step]
        zero = new.constant(0.0, np.float32)
        output = new.add("Where", [mask, state.hidden, zero])
        values = [
            new.add("Where", [mask, after, old]) if after else ""
            for after, old in zip(state, before, strict=True)
        ]
        return output, State(*values)


# The activations of LSTM, GRU and RNN, written as operators.

Activation = Callable[[graph_view.Replacement, str], str]
"""Adds the nodes and returns the name of the result."""

_PLAIN = {name.lower(): name for name in ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus")}
_DEFAULTS = {
    "leakyrelu": ("LeakyRelu", {"alpha": 0.01}),
    "thresholdedrelu": ("ThresholdedRelu", {"alpha": 1.0}),
    "elu": ("Elu", {"alpha": 1.0}),
    "hardsigmoid": ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
}
"""Operators with arguments, and their default values."""


def activations_of(
    node: onnx.NodeProto, defaults: Sequence[str], directions: int
) -> list[Activation] | None:
    """Returns all activations, those of the first direction first, each after the node's clip; None
    if one is unknown."""
    names = cast(
        "Sequence[str]", graph_view.attribute(node, "activations", list(defaults) * directions)
    )
    if len(names) != len(defaults) * directions:
        return None
    alphas = iter(cast("Sequence[float]", graph_view.attribute(node, "activation_alpha", [])))
    betas = iter(cast("Sequence[float]", graph_view.attribute(node, "activation_beta", [])))
    activations = [_activation(name.lower(), alphas, betas) for name in names]
    return None if None in activations else cast("list[Activation]", activations)


def clip_before(node: onnx.NodeProto, activation: Activation) -> Activation:
    """Returns the activation applied to the input after the node's `clip`."""
    limit = cast("float | None", graph_view.attribute(node, "clip"))
    if not limit:
        return activation

    def cut_off(new: graph_view.Replacement, value: str) -> str:
        low, high = new.constant(-limit, "float32"), new.constant(limit, "float32")
        return activation(new, new.add("Clip", [value, low, high]))

    return cut_off


def _activation(name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation | None:
    if name in _PLAIN:
        return lambda new, value: new.add(_PLAIN[name], [value])
    if name not in _DEFAULTS:
        return None
    operator, defaults = _DEFAULTS[name]
    by_name = {"alpha": alphas, "beta": betas}
    arguments: dict[str, Any] = {
        key: next(by_name[key], default) for key, default in defaults.items()
    }
    return lambda new, value: new.add(operator, [value], **arguments)
