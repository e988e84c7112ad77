"""One step of an LSTM, a GRU and an RNN, in operators. The gates' weights are one matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tunegate.edges.metaschedule.importers.activations import Activation
from tunegate.edges.metaschedule.importers.replacement import Replacement


class Gates(NamedTuple):
    """The gates of one direction. `recurrent` is `[hidden, gates * hidden]`; `peepholes`, if any,
    are those of the gates in order. `recurrent_bias` is that of the last gate of a GRU that scales
    it by its reset gate, and empty where the bias is in the projection."""

    hidden: int
    recurrent: str
    recurrent_bias: str
    peepholes: tuple[str, ...]
    is_coupled: bool
    """Whether the forget gate is 1 - input gate."""
    activations: Sequence[Activation]


class State(NamedTuple):
    """The state between steps; `cell` is that of an LSTM."""

    hidden: str
    cell: str = ""


CellStep = Callable[[Replacement, str, State, Gates], State]
"""Takes the projection of the step's input, `[batch, gates * hidden]`."""


def lstm_step(new: Replacement, projection: str, before: State, gates: Gates) -> State:
    """Gates in order: input, output, forget, cell."""
    gate, candidate, outward = gates.activations
    sums = new.add("Add", [projection, new.add("MatMul", [before.hidden, gates.recurrent])])
    into, out, forget, proposed = _gates(new, sums, gates.hidden, 4)
    peepholes = gates.peepholes or ("", "", "")
    let_in = gate(new, _seen(new, into, before.cell, peepholes[0]))
    if gates.is_coupled:
        kept = new.add("Sub", [new.constant(1.0, np.float32), let_in])
    else:
        kept = gate(new, _seen(new, forget, before.cell, peepholes[2]))
    old = new.add("Mul", [kept, before.cell])
    cell = new.add("Add", [old, new.add("Mul", [let_in, candidate(new, proposed)])])
    let_out = gate(new, _seen(new, out, cell, peepholes[1]))
    return State(new.add("Mul", [let_out, outward(new, cell)]), cell)


def gru_step(new: Replacement, projection: str, before: State, gates: Gates) -> State:
    """Gates in order: update, reset, hidden."""
    gate, candidate = gates.activations
    size = gates.hidden
    given = _gates(new, projection, size, 3)
    if gates.recurrent_bias:  # the reset gate scales what the product gives, bias included
        own = _gates(new, new.add("MatMul", [before.hidden, gates.recurrent]), size, 3)
        reset = gate(new, new.add("Add", [given[1], own[1]]))
        scaled = new.add("Mul", [reset, new.add("Add", [own[2], gates.recurrent_bias])])
    else:
        first = new.sliced(gates.recurrent, 1, 0, 2 * size)
        own = _gates(new, new.add("MatMul", [before.hidden, first]), size, 2)
        reset = gate(new, new.add("Add", [given[1], own[1]]))
        last = new.sliced(gates.recurrent, 1, 2 * size, 3 * size)
        scaled = new.add("MatMul", [new.add("Mul", [reset, before.hidden]), last])
    update = gate(new, new.add("Add", [given[0], own[0]]))
    proposed = candidate(new, new.add("Add", [given[2], scaled]))
    rest = new.add("Sub", [new.constant(1.0, np.float32), update])
    old = new.add("Mul", [update, before.hidden])
    return State(new.add("Add", [new.add("Mul", [rest, proposed]), old]))


def rnn_step(new: Replacement, projection: str, before: State, gates: Gates) -> State:
    """Returns the state after one step of an RNN."""
    (activation,) = gates.activations
    own = new.add("MatMul", [before.hidden, gates.recurrent])
    return State(activation(new, new.add("Add", [projection, own])))


def _gates(new: Replacement, sums: str, size: int, count: int) -> list[str]:
    return [new.sliced(sums, 1, number * size, (number + 1) * size) for number in range(count)]


def _seen(new: Replacement, sums: str, cell: str, peephole: str) -> str:
    if not peephole:
        return sums
    return new.add("Add", [sums, new.add("Mul", [peephole, cell])])
