"""The rule by which an input of a model is drawn, and its origin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

Category = int | float | str
InputForm = Literal["", "sequence", "optional", "optional sequence"]
"""The form of an input: '' for a tensor, else a sequence of tensors, or a value that may be
absent."""
DRAWN_LENGTH = 3
"""The number of tensors that are drawn for a sequence of unknown length."""


class Normal(msgspec.Struct, frozen=True, tag="normal"):
    """Floats around `mean`."""

    mean: float = 0.0
    deviation: float = 1.0


class Uniform(msgspec.Struct, frozen=True, tag="uniform"):
    """Floats from `low` to `high`."""

    low: float
    high: float


class Integers(msgspec.Struct, frozen=True, tag="integers"):
    """Integers from `low` to `high`, both included."""

    low: int
    high: int


class OneOf(msgspec.Struct, frozen=True, tag="choice"):
    """Some of `values`. A text takes `words` of them, with spaces between."""

    values: tuple[Category, ...]
    words: int = 1


class Constant(msgspec.Struct, frozen=True, tag="constant"):
    """The same value everywhere."""

    value: Category


Draw = Normal | Uniform | Integers | OneOf | Constant


class Columns(msgspec.Struct, frozen=True, tag="columns"):
    """One part for each index of an axis, as tables have a column for each kind of value."""

    axis: int
    parts: tuple[Draw, ...]


class Files(msgspec.Struct, frozen=True, tag="files"):
    """Arrays that the user gave, one for each case. Each file is called by the digest of what it
    holds; `names` are what messages call them."""

    files: tuple[str, ...]
    names: tuple[str, ...] = ()


Drawn = Draw | Columns | Files


class InputRule(msgspec.Struct, frozen=True):
    """The values of an input, and `why` these, in words for the report."""

    values: Drawn
    why: str = ""


STANDARD = InputRule(Normal())
"""The rule for an input of floats of which the graph says nothing."""


class KnownInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The knowledge about a model's inputs from outside of the model: the rules that the user gave,
    and the file of the base's model, whose inputs the head gets where it takes them."""

    given: dict[str, InputRule] = {}
    base: str = ""


NOTHING_KNOWN = KnownInputs()


class DrawnInput(msgspec.Struct, frozen=True):
    """An input of a build, as the report shows it; without a `rule` it has fair booleans. Shape,
    type and rule of a `form` are those of each of its tensors."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    rule: InputRule | None = None
    form: InputForm = ""

    @property
    def is_given(self) -> bool:
        """Returns whether the value comes from files, and nothing was drawn."""
        return self.rule is not None and isinstance(self.rule.values, Files)


# A model as it is run: its file, the sizes of its inputs, and their values.


class ShapedModel(msgspec.Struct, frozen=True):
    """The file of a model, the shapes that its inputs get, and the values that are given for
    them."""

    file: Path
    shapes: Mapping[str, tuple[int, ...]]
    given: Mapping[str, InputRule] = {}
