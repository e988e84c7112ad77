"""What the report says of builds that ship."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.measured_cells import make_build, make_builds, make_measurement, make_run
from tunegate.artifacts.builds import NumericCheck
from tunegate.decide.summarize import build_notes

ALLOWED = (
    "models/m.onnx on cpu: off by 1.4% of the largest output, where 5% is allowed: ONNX Runtime "
    "is off from itself by 2.8%, by how it optimizes and rounds"
)

WRITTEN = (
    "models/m.onnx on cpu: off by 1.4% of the largest output from the model as it is written; ONNX "
    "Runtime's optimizations are off from that by 15% here"
)


@pytest.mark.parametrize(
    ("noise", "as_written", "told"),
    [(None, False, []), (0.028, False, [ALLOWED]), (0.15, True, [WRITTEN])],
)
def test_numbers_that_may_differ_by_more_are_told(
    noise: float | None, as_written: bool, told: list[str]
) -> None:
    check = NumericCheck(
        passed=True,
        max_absolute=0.01,
        max_relative=0.014,
        tolerance=0.05,
        reference_noise=noise,
        as_written=as_written,
    )
    head = msgspec.structs.replace(make_build("b"), check=check)
    run = make_run(make_measurement(), make_builds(make_build("a"), head))
    assert list(build_notes(run)) == told


def test_what_a_runtime_says_of_how_it_runs_is_told() -> None:
    head = msgspec.structs.replace(make_build("b"), notes=("3 of 9 nodes run on the CPU: Resize",))
    run = make_run(make_measurement(), make_builds(make_build("a"), head))
    told = "models/m.onnx on cpu (head): 3 of 9 nodes run on the CPU: Resize"
    assert list(build_notes(run)) == [told]
