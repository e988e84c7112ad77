"""The rule by which a model's input is drawn, and where the rule comes from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from tunegate.config import ValuesConfig

Category = int | float | str
InputForm = Literal["", "sequence", "optional", "optional sequence"]
"""'' for a tensor, otherwise a sequence of tensors, or an optional value."""
DRAWN_LENGTH = 3
"""The number of tensors drawn for a sequence of unknown length."""


class Normal(msgspec.Struct, frozen=True, tag="normal"):
    """Floats around `mean`."""

    mean: float = 0.0
    deviation: float = 1.0


class Uniform(msgspec.Struct, frozen=True, tag="uniform"):
    """Floats between `low` and `high`."""

    low: float
    high: float


class Integers(msgspec.Struct, frozen=True, tag="integers"):
    """Integers from `low` to `high`, both included."""

    low: int
    high: int


class OneOf(msgspec.Struct, frozen=True, tag="choice"):
    """Some of `values`. A text joins `words` of them by spaces."""

    values: tuple[Category, ...]
    words: int = 1


class Constant(msgspec.Struct, frozen=True, tag="constant"):
    """The same value everywhere."""

    value: Category


Draw = Normal | Uniform | Integers | OneOf | Constant


class Columns(msgspec.Struct, frozen=True, tag="columns"):
    """A rule for each index of an axis, as in tables with a column for each kind of value."""

    axis: int
    parts: tuple[Draw, ...]


class Files(msgspec.Struct, frozen=True, tag="files"):
    """Arrays that the user gave, one for each case. Each file is stored under the digest of its
    content; `names` are for messages."""

    files: tuple[str, ...]
    names: tuple[str, ...] = ()


Drawn = Draw | Columns | Files


class InputRule(msgspec.Struct, frozen=True):
    """The values of an input, and `why` these, in words for the report."""

    values: Drawn
    why: str = ""


GIVEN = "given: "
"""The beginning of `why` for values that the configuration gives."""
UNLIMITED = "integers that the graph does not limit"
"""The end of `why` for integers that may be any of their type, whatever was drawn."""
STANDARD = InputRule(Normal())
"""The rule for a float input if the graph tells nothing."""


class KnownInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Rules for a model's inputs from outside of it: the user's own, and the base's model file,
    whose inputs the head gets if it takes them."""

    given: dict[str, InputRule] = {}
    base: str = ""


NOTHING_KNOWN = KnownInputs()


class DrawnInput(msgspec.Struct, frozen=True):
    """An input of a build, as the report shows it. Without a `rule` it has fair booleans. For a
    `form`, shape, type and rule are those of each tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    rule: InputRule | None = None
    form: InputForm = ""

    @property
    def is_given(self) -> bool:
        """True if the value comes from files, so nothing was drawn."""
        return self.rule is not None and isinstance(self.rule.values, Files)


# The values that the configuration gives for the inputs of a model.


class GivenFor(msgspec.Struct, frozen=True, kw_only=True):
    """The values and shapes given for one side's inputs. Files are looked for at `revisions`, the
    first one first. `former` maps inputs to their names there, if they differ."""

    values: Mapping[str, ValuesConfig]
    shapes: Mapping[str, tuple[int, ...]]
    revisions: tuple[str, ...]
    former: Mapping[str, str] = {}


ABSENT = "no such file in this revision"
"""The words for a value file that a revision lacks."""


class GivenRules(msgspec.Struct, frozen=True):
    """The resulting rules, and what is wrong: one line each, without the model's name."""

    rules: Mapping[str, InputRule]
    problems: tuple[str, ...]


# A model as it is run: file, sizes and values of its inputs.


class ShapedModel(msgspec.Struct, frozen=True):
    """A model file, the shapes of its inputs, and the values given for them."""

    file: Path
    shapes: Mapping[str, tuple[int, ...]]
    given: Mapping[str, InputRule] = {}
