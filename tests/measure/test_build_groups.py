from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.plans import plan_of
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.builds import Cell
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import SIDES
from tunegate.measure.build_groups import (
    WantedBuild,
    built_together,
    compiled_later,
    compiled_sides,
    told_builds,
)


def candidate(runtime: str, variant: str = "", *, is_tuned: bool = False) -> CandidateBuild:
    return CandidateBuild(runtime=runtime, title=runtime, variant=variant, is_tuned=is_tuned)


def test_a_compiler_builds_one_candidate_after_the_other_and_others_all_at_once() -> None:
    ours = (candidate("tvm", is_tuned=True), candidate("tvm", "bf16", is_tuned=True))
    theirs = (candidate("fast"), candidate("fast", "bf16"), candidate("other"))
    assert built_together({"cpu": (*ours, *theirs)}) == [
        [ours[0]],
        [ours[1]],
        [theirs[0], theirs[1]],
        [theirs[2]],
    ]


def test_what_two_targets_have_is_built_in_one_group() -> None:
    both, one = candidate("fast"), candidate("fast", "int8")
    assert built_together({"a": (both,), "b": (both, one)}) == [[both, one]]


WANTED = st.builds(
    WantedBuild,
    candidate=st.sampled_from([candidate("tvm", is_tuned=True), candidate("fast")]),
    cell=st.sampled_from([Cell(model="a.onnx", target="cpu"), Cell(model="b.onnx", target="cpu")]),
    side=st.sampled_from(SIDES),
)


@given(st.lists(st.lists(WANTED, max_size=4), max_size=5))
def test_a_compiler_keeps_a_model_open_until_its_last_candidate_is_built(
    groups: list[list[WantedBuild]],
) -> None:
    later = compiled_later(groups)
    assert len(later) == len(groups)
    for at, places in enumerate(later):
        rest = [each for group in groups[at + 1 :] for each in group]
        assert places == {each.place for each in rest if each.candidate.is_tuned}


A, B = (Cell(model=name, target="cpu") for name in ("a.onnx", "b.onnx"))


def test_a_model_that_the_compiler_does_not_take_is_not_listed_among_its_builds() -> None:
    compiler = candidate("tvm", is_tuned=True)
    wanted = [WantedBuild(compiler, cell, "head") for cell in (A, B)]
    assert told_builds(wanted, {(B, "head")}) == "build: 1 build with tvm: b.onnx (head)"
    assert told_builds(wanted, ()) == "build: 2 builds with tvm: a.onnx (head), b.onnx (head)"
    assert told_builds(wanted, (), is_compared=False).endswith("with tvm: a.onnx, b.onnx")
    other = [each._replace(candidate=candidate("fast")) for each in wanted]
    assert told_builds(other, {(B, "head")}).startswith("build: 2 builds with fast: a.onnx")


def test_a_side_with_a_task_is_one_that_the_compiler_takes() -> None:
    plan = plan_of([make_task("a")])
    (use,) = plan.resolution.tasks[0].task.uses
    assert compiled_sides(plan) == {(Cell(model=use.model, target="cpu"), use.side)}
