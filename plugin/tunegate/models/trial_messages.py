"""Messages to and from the child that runs a model on drawn inputs."""

import msgspec

from tunegate.artifacts.inputs import DrawnInput, InputRule


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a run. `problem` is why ONNX Runtime rejects the inputs, `dull` why the
    outputs tell nothing; both '' if all is well. It `is_late` if the time limit passed first.
    `shapes` are the outputs' shapes, `size_bytes` what all outputs take."""

    problem: str = ""
    dull: str = ""
    seconds: float = 0.0
    is_late: bool = False
    shapes: tuple[tuple[int, ...], ...] = ()
    size_bytes: int = 0

    @property
    def runs(self) -> bool:
        return not self.problem


RUN_SECONDS = 10.0
"""The time limit of one inference, not counting time in which other programs had the cores."""
BUILT_SECONDS = 45.0
"""The same where the model is built next. That takes six more inferences within five minutes, so a
model that takes longer could hardly be built."""


def too_slow(seconds: float, *, has_sizes: bool) -> str:
    """Returns why a model is not run whose inference does not end in these seconds, and what to
    do."""
    advice = ": give smaller sizes" if has_sizes else ""
    return f"it takes longer than {seconds:.0f} s an inference{advice}"


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
