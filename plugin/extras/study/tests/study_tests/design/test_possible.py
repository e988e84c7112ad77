from __future__ import annotations

from tunegate.artifacts.candidates import CandidateBuild
from tunegate_study.design.possible import Offers, candidate_for, precision_level, space_of
from tunegate_study.studies import Axis

CANDIDATES = (
    CandidateBuild(runtime="tvm", title="TVM", is_tuned=True),
    CandidateBuild(
        runtime="tvm",
        title="TVM (bfloat16)",
        variant="bf16",
        settings={"precision": "bfloat16"},
        is_tuned=True,
    ),
    CandidateBuild(runtime="onnxruntime", title="ONNX Runtime"),
    CandidateBuild(
        runtime="onnxruntime",
        title="ONNX Runtime (int8)",
        variant="int8",
        settings={"precision": "int8", "quantization": "static"},
    ),
    CandidateBuild(
        runtime="onnxruntime",
        title="ONNX Runtime (int8.dynamic)",
        variant="int8.dynamic",
        settings={"precision": "int8"},
    ),
)


def offers(calibrated: frozenset[str] = frozenset(), lacks: str = "") -> Offers:
    return Offers(
        candidates={"cpu": CANDIDATES},
        variants={"a": frozenset({"given", "half"}), "b": frozenset({"given"})},
        calibrated=calibrated,
        lacks={("onnxruntime", "int8"): lacks} if lacks else {},
    )


def axes(**levels: tuple[str, ...]) -> tuple[Axis, ...]:
    every = {
        "model": ("a",),
        "variant": ("given",),
        "runtime": ("tvm",),
        "precision": ("float32",),
        "layout": ("auto",),
        "algorithm": ("auto",),
        "tuning": ("untuned",),
        "threads": ("1",),
        "target": ("cpu",),
        **levels,
    }
    return tuple(Axis(name=name, levels=each) for name, each in every.items())


def reasons(found: tuple[Axis, ...], given: Offers) -> dict[str, int]:
    return {left.reason: left.count for left in space_of(found, given).left_out}


def test_a_runtime_that_compiles_nothing_is_measured_once() -> None:
    varied = axes(runtime=("tvm", "onnxruntime"), tuning=("untuned", "64"), layout=("nchw", "nhwc"))
    space = space_of(varied, offers())
    assert len(space.possible) == 5
    assert reasons(varied, offers()) == {
        "ONNX Runtime compiles nothing: layout and tuning would change nothing": 3
    }
    assert {stand_in["tuning"] for _, stand_in in space.repeats} == {"untuned"}
    assert all(stand_in in space.possible for _, stand_in in space.repeats)


def test_each_hole_has_its_reason() -> None:
    varied = axes(
        model=("a", "b"),
        variant=("given", "half"),
        runtime=("tvm", "onnxruntime"),
        precision=("float32", "int8"),
    )
    assert reasons(varied, offers()) == {
        "tvm offers no int8 on cpu": 3,
        "int8 is calibrated, and the inputs of a have no values": 2,
        "b has no variant half": 4,
        "int8 is calibrated, and the inputs of b have no values": 1,
    }
    lacking = reasons(
        axes(runtime=("onnxruntime",), precision=("float32", "int8")),
        offers(frozenset({"a"}), "no VNNI"),
    )
    assert lacking == {"onnxruntime offers no int8 here: no VNNI": 1}


def test_int8_says_how_it_came_to_its_ranges() -> None:
    assert [precision_level(each) for each in CANDIDATES] == [
        "float32",
        "bfloat16",
        "float32",
        "int8",
        "int8-dynamic",
    ]
    (setting,) = space_of(
        axes(runtime=("onnxruntime",), precision=("int8-dynamic",)), offers()
    ).possible
    found = candidate_for(setting, offers())
    assert found is not None
    assert found.variant == "int8.dynamic"


def test_a_form_of_convolutions_is_for_what_compiles_them_in_float32() -> None:
    varied = axes(
        runtime=("tvm", "onnxruntime"),
        precision=("float32", "bfloat16"),
        algorithm=("auto", "direct", "im2col"),
    )
    space = space_of(varied, offers())
    assert len(space.possible) == 5
    assert reasons(varied, offers()) == {
        "tvm has an algorithm of its own for bfloat16": 2,
        "ONNX Runtime compiles nothing: algorithm would change nothing": 2,
        "onnxruntime offers no bfloat16 on cpu": 3,
    }
