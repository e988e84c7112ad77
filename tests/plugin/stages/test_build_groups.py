from __future__ import annotations

from tunegate.artifacts.candidates import CandidateBuild
from tunegate.stages.build_groups import built_together


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
