from __future__ import annotations

import msgspec

from tests.support.measured_cells import make_build
from tunegate.artifacts.builds import CandidateTime, RuntimeChoice, unbuilt


def test_a_build_is_told_from_the_others_of_its_side_by_runtime_and_variant() -> None:
    build = msgspec.structs.replace(make_build(), runtime="tvm", variant="nhwc")
    assert build.candidate == "tvm-nhwc"


def test_a_choice_knows_the_time_of_each_candidate_that_was_measured() -> None:
    times = (
        CandidateTime(candidate="tvm", title="TVM", ms=2.0),
        CandidateTime(candidate="onnxruntime", title="ONNX Runtime", ms=3.0),
    )
    choice = RuntimeChoice(times=times)
    assert choice.ms_of("onnxruntime") == 3.0
    assert choice.ms_of("openvino") is None


def test_what_was_not_built_has_nothing_but_its_reason() -> None:
    build = unbuilt("cannot be imported")
    assert (build.key, build.tasks, build.size_bytes) == ("", (), 0)
    assert (build.error, build.crashed) == ("cannot be imported", False)
