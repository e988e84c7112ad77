from __future__ import annotations

from tunegate.artifacts.candidates import CandidateBuild, candidate_name


def test_the_usual_way_of_a_runtime_has_its_name_and_a_variant_adds_its_own() -> None:
    assert candidate_name("tvm", "") == "tvm"
    assert candidate_name("openvino", "bf16") == "openvino-bf16"
    assert (
        CandidateBuild(runtime="openvino", title="OpenVINO", variant="bf16").name == "openvino-bf16"
    )


def test_a_candidate_computes_in_float32_unless_its_settings_say_otherwise() -> None:
    assert CandidateBuild(runtime="any", title="Any").precision == "float32"
    half = CandidateBuild(runtime="any", title="Any", settings={"precision": "bfloat16"})
    assert half.precision == "bfloat16"
