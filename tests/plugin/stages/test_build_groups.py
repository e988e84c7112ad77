from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.candidates import CandidateBuild
from tunegate.artifacts.changes import SIDES
from tunegate.stages.build_groups import WantedBuild, built_together, compiled_later


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
