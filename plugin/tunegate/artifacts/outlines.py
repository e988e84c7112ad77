"""What can be seen of a model without running it: enough to tell which model it used to be."""

from __future__ import annotations

import msgspec


class ModelInput(msgspec.Struct, frozen=True):
    """An input of a model; a dimension that the model leaves open is None."""

    name: str
    dimensions: tuple[int | None, ...]


class ModelOutline(msgspec.Struct, frozen=True, kw_only=True):
    """`parts` counts the operators and the shapes of the weights. `seeded` are the kinds of
    operators whose random numbers begin at a seed of the model's, wherever in it they stand."""

    graph_digest: str
    inputs: tuple[ModelInput, ...]
    parts: dict[str, int]
    seeded: tuple[str, ...] = ()
