from __future__ import annotations

from tunegate.artifacts.candidates import CandidateBuild, candidate_name


def test_the_usual_way_of_a_runtime_has_its_name_and_a_variant_adds_its_own() -> None:
    assert candidate_name("tvm", "") == "tvm"
    assert candidate_name("openvino", "bf16") == "openvino-bf16"
    assert (
        CandidateBuild(runtime="openvino", title="OpenVINO", variant="bf16").name == "openvino-bf16"
    )
