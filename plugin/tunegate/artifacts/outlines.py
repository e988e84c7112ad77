"""An outline of a model, seen without running it: enough to recognise a model that was renamed."""

from __future__ import annotations

import msgspec


class ModelInput(msgspec.Struct, frozen=True):
    """An input of a model; a dimension that the model leaves open is None. `symbols` are the names
    of its dimensions, '' for one without; an input that is not `is_ranked` leaves open how many
    dimensions it has. `dtype` is NumPy's name of its type, '' where it is no tensor. One that
    `is_several` has the dimensions of the tensors in it, and each its own where they are open."""

    name: str
    dimensions: tuple[int | None, ...]
    symbols: tuple[str, ...] = ()
    is_ranked: bool = True
    dtype: str = ""
    is_several: bool = False

    def symbol(self, axis: int) -> str:
        """The name of an open dimension, or ''."""
        return self.symbols[axis] if axis < len(self.symbols) else ""


class ModelOutline(msgspec.Struct, frozen=True, kw_only=True):
    """`parts` counts the operators and the shapes of the weights. `seeded` are the kinds of
    operators whose random numbers begin at a seed of the model's, wherever in it they stand."""

    graph_digest: str
    inputs: tuple[ModelInput, ...]
    parts: dict[str, int]
    seeded: tuple[str, ...] = ()
