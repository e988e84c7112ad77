"""Seeds of the inputs that decide whether a build in lower precision ships.

They are the same in each run, so that a candidate near its budget does not pass in one and fail in
the next. The inputs drawn from them depend only on the model's inputs and their rules.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tunegate.artifacts.inputs import Files
from tunegate.errors import ModelError
from tunegate.models.seeded_inputs import cases_of, seeded_inputs
from tunegate.system.clock import derive_seed
from tunegate.system.output.artifact_file import ArtifactTensor

_ROOT = 1


def error_seeds(count: int) -> tuple[int, ...]:
    """Returns the seeds of `count` inputs that measure an error. A longer list begins with a
    shorter one."""
    return tuple(derive_seed(_ROOT, "accuracy", n) for n in range(count))


def lasting_order(cases: int) -> tuple[int, ...]:
    """Returns the case numbers in a fixed shuffled order: lists are often sorted by class, and
    would begin with one class alone."""
    return tuple(sorted(range(cases), key=lambda case: derive_seed(_ROOT, "order", case)))


def calibration_seeds(count: int) -> tuple[int, ...]:
    """Returns the seeds of `count` inputs to learn ranges from, none of which measures an error."""
    return tuple(derive_seed(_ROOT, "calibration", n) for n in range(count))


# Separates inputs for calibration from those that measure the error: on the same inputs errors
# would look too small.

MAX_INPUTS = 32
_SHARE = 5
"""One case in this many calibrates."""


class Calibration(msgspec.Struct, frozen=True):
    """The inputs to calibrate a runtime on: drawn from the `seeds`, or the given `cases`."""

    inputs: tuple[ArtifactTensor, ...]
    seeds: tuple[int, ...]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for case, seed in enumerate(self.seeds):
            yield seeded_inputs(self.inputs, seed, case)


def calibration(
    inputs: Sequence[ArtifactTensor], given_inputs: Collection[str], seeds: Sequence[int], path: str
) -> tuple[Calibration, tuple[ArtifactTensor, ...]]:
    """Returns the calibration inputs, and the inputs with the remaining cases to measure the error
    on. Raises ModelError for float inputs without given values."""
    missing = [
        each.name for each in inputs if "float" in each.dtype and each.name not in given_inputs
    ]
    if missing:
        message = (
            f"{path}: static int8 is calibrated on values that you give, and there are none for "
            f"{', '.join(missing)}: write them under inputs: in tunegate.yaml."
        )
        raise ModelError(message)
    cases = cases_of(inputs)
    count = min(MAX_INPUTS, max(1, cases // _SHARE))
    if cases == 1:
        return Calibration(tuple(inputs), tuple(seeds[:MAX_INPUTS])), tuple(inputs)
    order = lasting_order(cases)
    learned, others = sorted(order[:count]), sorted(order[count:])
    other_inputs = tuple(_cases(each, others) for each in inputs)
    own_inputs = tuple(_cases(each, learned) for each in inputs)
    return Calibration(own_inputs, tuple(seeds[:count])), other_inputs


def _cases(tensor: ArtifactTensor, indexes: Sequence[int]) -> ArtifactTensor:
    """Returns the input with only these cases; an input with one value for all keeps it."""
    rule = tensor.rule
    if rule is None or not isinstance(rule.values, Files) or len(rule.values.files) == 1:
        return tensor
    case_files = rule.values
    files = Files(
        tuple(case_files.files[case] for case in indexes),
        tuple(case_files.names[case] for case in indexes if case_files.names),
    )
    return msgspec.structs.replace(tensor, rule=msgspec.structs.replace(rule, values=files))
