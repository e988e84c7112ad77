"""A build that is wrong with channels last is made again with channels first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.support.measured_cells import make_build
from tunegate.artifacts.builds import Build, unbuilt
from tunegate.config import TargetConfig
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.tvm.finished_build import in_other_layout, refusal_of_tuning

CPU = TargetConfig(name="cpu")
FINE, WRONG = make_build("fine"), make_build("wrong", error="computes other numbers")


def job(target: TargetConfig = CPU) -> BuildJob:
    model = ModelJob(file=Path("m"), path="m", shapes={}, target=target)
    return BuildJob(model=model, records={}, sources={}, directory=Path("d"))


class Builder:
    def __init__(self, build: Build) -> None:
        self.build, self.layouts = build, list[str]()

    def __call__(self, jobs: Sequence[BuildJob]) -> Sequence[Build]:
        self.layouts += [each.model.target.layout for each in jobs]
        return [self.build for _ in jobs]


def test_a_wrong_build_is_made_again_with_channels_first_and_says_so() -> None:
    builder = Builder(make_build("again"))
    one, other = in_other_layout([job(), job()], [FINE, WRONG], builder)
    assert builder.layouts == ["nchw"]
    assert (one, other.key, other.error) == (FINE, "again", None)
    assert other.without_channels_last == "computes other numbers"


def test_a_build_that_is_wrong_in_both_layouts_says_what_was_wrong_first() -> None:
    builder = Builder(make_build("again", error="so does this one"))
    assert in_other_layout([job()], [WRONG], builder) == [WRONG]


@pytest.mark.parametrize(
    ("build", "target"),
    [
        (FINE, CPU),
        (unbuilt("no operator Odd"), CPU),
        (msgspec.structs.replace(WRONG, crashed=True), CPU),
        (WRONG, msgspec.structs.replace(CPU, layout="nhwc")),
        (WRONG, TargetConfig(name="gpu", kind="cuda", arch="sm_80")),
    ],
    ids=["right", "refused", "died", "told", "gpu"],
)
def test_nothing_else_is_made_again(build: Build, target: TargetConfig) -> None:
    """What is refused was tried in both layouts when it was imported."""
    builder = Builder(FINE)
    assert in_other_layout([job(target)], [build], builder) == [build]
    assert not builder.layouts


def test_what_is_right_in_the_other_layout_alone_is_not_tuned_and_says_what_to_set() -> None:
    model = job().model
    assert (refusal_of_tuning(model, None), refusal_of_tuning(model, FINE)) == ("", "")
    assert refusal_of_tuning(model, WRONG) == "computes other numbers"
    other = msgspec.structs.replace(FINE, without_channels_last="computes other numbers")
    assert "layout: nchw" in refusal_of_tuning(model, other)
