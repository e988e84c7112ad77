"""Messages to and from the child that runs a model on drawn inputs, and what a run tells."""

from __future__ import annotations

import msgspec

from tunegate.artifacts.inputs import DrawnInput, InputRule


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """`problem` is why ONNX Runtime does not run on the inputs, `dull` what makes its outputs tell
    nothing; '' without. `is_late` where it took too long to know. `shapes` are those of the
    outputs."""

    problem: str = ""
    dull: str = ""
    seconds: float = 0.0
    is_late: bool = False
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def runs(self) -> bool:
        return not self.problem


class TrySizes(msgspec.Struct, frozen=True, kw_only=True):
    """A model in `file`, called `path`, to be run at these `shapes`; `scratch` is the child's."""

    file: str
    path: str
    shapes: dict[str, tuple[int, ...]]
    scratch: str
    seconds: float


class TriedSizes(msgspec.Struct, frozen=True, kw_only=True, tag="tried"):
    """`inputs` are what it was run on, and `rules` those of inputs that a configuration should say:
    settings by their names, and what a trial found."""

    outcome: Outcome
    inputs: tuple[DrawnInput, ...] = ()
    rules: dict[str, InputRule] = {}


class NotLoaded(msgspec.Struct, frozen=True, tag="not-loaded"):
    """ONNX Runtime does not load the model, whatever its sizes."""

    reason: str


TrialReply = TriedSizes | NotLoaded
"""An answer of the child."""
