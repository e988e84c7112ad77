"""Seeds of the inputs that decide whether a build in other numbers ships.

They are the same in each run, so that a candidate near its budget does not pass in one and fail in
the next. What is drawn from them follows from the model's inputs and their rules alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tunegate.artifacts.inputs import Files
from tunegate.errors import ModelError
from tunegate.models.seeded_inputs import cases_of, seeded_inputs
from tunegate.system.clock import derived
from tunegate.system.output.artifact_file import ArtifactTensor

_ROOT = 1


def error_seeds(count: int) -> tuple[int, ...]:
    """The seeds of so many inputs that tell an error. More begin with those of fewer."""
    return tuple(derived(_ROOT, "accuracy", n) for n in range(count))


def lasting_order(cases: int) -> tuple[int, ...]:
    """The numbers of so many cases as if they were shuffled: lists are often sorted by class, and
    their first cases are of one class alone."""
    return tuple(sorted(range(cases), key=lambda case: derived(_ROOT, "order", case)))


def calibration_seeds(count: int) -> tuple[int, ...]:
    """The seeds of so many inputs to learn ranges from: none of those that tell an error."""
    return tuple(derived(_ROOT, "calibration", n) for n in range(count))


# Inputs for calibration, and others that are kept from it: errors on the same inputs would be too
# small.

MAX_INPUTS = 32
_SHARE = 5
"""One in this many cases calibrates."""


class Calibration(msgspec.Struct, frozen=True):
    """The inputs that a runtime is calibrated on: drawn by the `seeds`, or `cases` of those."""

    inputs: tuple[ArtifactTensor, ...]
    seeds: tuple[int, ...]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for case, seed in enumerate(self.seeds):
            yield seeded_inputs(self.inputs, seed, case)


def calibration(
    inputs: Sequence[ArtifactTensor], given: Collection[str], seeds: Sequence[int], path: str
) -> tuple[Calibration, tuple[ArtifactTensor, ...]]:
    """Returns what to calibrate on, and the inputs with the cases that are left to tell the error.
    Raises ModelError for inputs of floats that the user gave no values for."""
    missing = [each.name for each in inputs if "float" in each.dtype and each.name not in given]
    if missing:
        message = (
            f"{path}: static int8 is calibrated on values that you give, and there are none for "
            f"{', '.join(missing)}: write them under inputs: in tunegate.yaml."
        )
        raise ModelError(message)
    cases = cases_of(inputs)
    used = min(MAX_INPUTS, max(1, cases // _SHARE))
    if cases == 1:
        return Calibration(tuple(inputs), tuple(seeds[:MAX_INPUTS])), tuple(inputs)
    order = lasting_order(cases)
    learned, kept = sorted(order[:used]), sorted(order[used:])
    left = tuple(_cases(each, kept) for each in inputs)
    taken = tuple(_cases(each, learned) for each in inputs)
    return Calibration(taken, tuple(seeds[:used])), left


def _cases(tensor: ArtifactTensor, wanted: Sequence[int]) -> ArtifactTensor:
    """The input with some of its cases; one that has the same in all keeps it."""
    rule = tensor.rule
    if rule is None or not isinstance(rule.values, Files) or len(rule.values.files) == 1:
        return tensor
    given = rule.values
    files = Files(
        tuple(given.files[case] for case in wanted),
        tuple(given.names[case] for case in wanted if given.names),
    )
    return msgspec.structs.replace(tensor, rule=msgspec.structs.replace(rule, values=files))
