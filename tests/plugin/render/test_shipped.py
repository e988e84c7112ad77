from __future__ import annotations

import msgspec
import pytest

from tests.support.reports import make_report
from tunegate.artifacts.builds import Runtime, RuntimeChoice
from tunegate.artifacts.verdicts import Report
from tunegate.render.shipped import shipped


def report(runtime: Runtime, choice: RuntimeChoice | None, base: Runtime) -> Report:
    made = make_report("slowed")
    assert made.run is not None
    built = made.run.builds[0]
    assert built.head is not None
    assert built.base is not None
    replaced = msgspec.structs.replace(
        built,
        base=msgspec.structs.replace(built.base, runtime=base),
        head=msgspec.structs.replace(built.head, runtime=runtime, choice=choice),
    )
    run = msgspec.structs.replace(made.run, builds=(replaced,))
    return msgspec.structs.replace(made, run=run)


BOTH = RuntimeChoice(tvm_ms=8.0, onnxruntime_ms=6.0)


@pytest.mark.parametrize(
    ("runtime", "choice", "base", "said"),
    [
        (
            "onnxruntime",
            BOTH,
            "onnxruntime",
            "ONNX Runtime: 6.000 ms, 25 % faster than TVM (8.000 ms).",
        ),
        ("onnxruntime", BOTH, "tvm", "than TVM (8.000 ms); the base runs with TVM."),
        (
            "tvm",
            RuntimeChoice(tvm_ms=4.04, onnxruntime_ms=4.0),
            "tvm",
            "TVM: 4.040 ms, 1 % slower than ONNX Runtime (4.000 ms).",
        ),
        (
            "onnxruntime",
            RuntimeChoice(reason="operator Odd is not supported."),
            "onnxruntime",
            "ONNX Runtime (operator Odd is not supported).",
        ),
    ],
)
def test_the_sentence_says_what_ships_and_what_it_saves(
    runtime: Runtime, choice: RuntimeChoice, base: Runtime, said: str
) -> None:
    (sentence,) = shipped(report(runtime, choice, base), str)
    assert "ships with" in sentence
    assert sentence.endswith(said)


def test_without_a_choice_nothing_is_said() -> None:
    assert list(shipped(report("tvm", None, "tvm"), str)) == []
