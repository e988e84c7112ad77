from __future__ import annotations

import msgspec
import pytest

from tunegate.artifacts.builds import Build, BuiltTask, NumericCheck, unbuilt
from tunegate_cache.format.records import WorkloadKey
from tunegate_study.run.finished_build import layers_with, may_pass, misfit

WRONG = NumericCheck(passed=False, max_absolute=1.0, max_relative=0.1, tolerance=1e-3)


def task(algorithm: str, weight: int) -> BuiltTask:
    return BuiltTask(
        key=WorkloadKey("w", "t"),
        name="conv",
        weight=weight,
        source="default",
        rid="",
        ms=None,
        algorithm=algorithm,
    )


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (unbuilt("no such operator"), False),
        (unbuilt("it died", crashed=True), True),
        (msgspec.structs.replace(unbuilt("other numbers"), check=WRONG), True),
    ],
)
def test_what_hangs_on_drawn_inputs_or_on_luck_may_pass_another_time(
    build: Build, *, wanted: bool
) -> None:
    assert may_pass(build) is wanted


def test_a_build_without_an_error_needs_no_other_time() -> None:
    right = msgspec.structs.replace(WRONG, passed=True)
    assert not may_pass(msgspec.structs.replace(unbuilt(""), error=None, check=right))


def test_layers_of_the_form_are_counted_and_none_is_a_misfit() -> None:
    tasks = (task("im2col", 3), task("", 5), task("im2col", 2))
    assert layers_with(msgspec.structs.replace(unbuilt(""), tasks=tasks), "im2col") == 5
    assert not misfit("im2col", 5)
    assert misfit("im2col", 0) == "no layer of the model has the form im2col here"
    assert not misfit("auto", 0) + misfit("direct", 0)
