"""Messages to and from the child that runs a model on drawn inputs."""

import msgspec

from tunegate.artifacts.inputs import DrawnInput, InputRule


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run. `problem` is why ONNX Runtime rejects the inputs, `dull` why the
    outputs tell nothing; both '' if all is well. It `is_late` if the time limit passed first.
    `shapes` are the outputs' shapes."""

    problem: str = ""
    dull: str = ""
    seconds: float = 0.0
    is_late: bool = False
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def runs(self) -> bool:
        return not self.problem


class TrySizes(msgspec.Struct, frozen=True, kw_only=True):
    """A request to run the model in `file`, called `path`, at these `shapes`; `scratch` is the
    child's."""

    file: str
    path: str
    shapes: dict[str, tuple[int, ...]]
    scratch: str
    seconds: float


class TriedSizes(msgspec.Struct, frozen=True, kw_only=True, tag="tried"):
    """`inputs` are what it ran on, `rules` those that a configuration should state: settings by
    their names, and rules that a trial found."""

    outcome: Outcome
    inputs: tuple[DrawnInput, ...] = ()
    rules: dict[str, InputRule] = {}


class NotLoaded(msgspec.Struct, frozen=True, tag="not-loaded"):
    """A sentence without its end: nobody reads the model, or ONNX Runtime does not load it,
    whatever its sizes."""

    reason: str


TrialReply = TriedSizes | NotLoaded
"""A reply of the child."""
