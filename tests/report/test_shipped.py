from __future__ import annotations

import msgspec
import pytest

from tests.report.budgeted import make_error
from tests.support.reports import make_report
from tunegate.artifacts.builds import CandidateTime, RefusedCandidate, RuntimeChoice
from tunegate.artifacts.verdicts import Report
from tunegate.report.sentences import shipped, shipped_in_short

TITLES = {"tvm": "TVM", "onnxruntime": "ONNX Runtime", "third": "Third"}


def times(**milliseconds: float) -> RuntimeChoice:
    return RuntimeChoice(
        times=tuple(
            CandidateTime(candidate=name, title=TITLES[name], ms=ms)
            for name, ms in milliseconds.items()
        )
    )


def report(runtime: str, choice: RuntimeChoice | None, base: str) -> Report:
    made = make_report("slowed")
    assert made.run is not None
    built = made.run.builds[0]
    assert built.head is not None
    assert built.base is not None
    replaced = msgspec.structs.replace(
        built,
        base=msgspec.structs.replace(built.base, runtime=base, title=TITLES[base]),
        head=msgspec.structs.replace(
            built.head, runtime=runtime, title=TITLES[runtime], choice=choice
        ),
    )
    run = msgspec.structs.replace(made.run, builds=(replaced,))
    return msgspec.structs.replace(made, run=run)


ODD = RefusedCandidate(candidate="tvm", title="TVM", reason="operator Odd is not supported.")
ERROR = make_error(28.0, 24.3, 44.3)
BOTH = times(tvm=8.0, onnxruntime=6.0)


@pytest.mark.parametrize(
    ("runtime", "choice", "base", "said"),
    [
        (
            "onnxruntime",
            BOTH,
            "onnxruntime",
            "ONNX Runtime, 25% faster than TVM when they were compared.",
        ),
        ("onnxruntime", BOTH, "tvm", "than TVM when they were compared; the base runs with TVM."),
        (
            "tvm",
            times(tvm=4.04, onnxruntime=4.0),
            "tvm",
            "TVM, 1% slower than ONNX Runtime (not clearly) when they were compared.",
        ),
        (
            "third",
            times(tvm=8.0, onnxruntime=6.0, third=3.0),
            "third",
            ("Third, 50% faster than ONNX Runtime, 62% faster than TVM when they were compared."),
        ),
        (
            "onnxruntime",
            RuntimeChoice(refused=(ODD,)),
            "onnxruntime",
            "ONNX Runtime (TVM: operator Odd is not supported).",
        ),
        (
            "onnxruntime",
            RuntimeChoice(reason="not measured: no answer in 120 s", refused=(ODD,)),
            "onnxruntime",
            "(not measured: no answer in 120 s; TVM: operator Odd is not supported).",
        ),
        (
            "third",
            msgspec.structs.replace(times(onnxruntime=6.0, third=3.0), refused=(ODD,)),
            "third",
            "than ONNX Runtime when they were compared (TVM: operator Odd is not supported).",
        ),
    ],
)
def test_the_sentence_says_what_ships_and_what_it_saves(
    runtime: str, choice: RuntimeChoice, base: str, said: str
) -> None:
    (sentence,) = shipped(report(runtime, choice, base), str)
    assert "ships with" in sentence
    assert sentence.endswith(said)


def test_in_short_it_counts_those_that_are_refused() -> None:
    off = RefusedCandidate(candidate="third", title="Third", reason="off", error=ERROR)
    choice = msgspec.structs.replace(BOTH, refused=(off, ODD, ODD))
    (sentence,) = shipped_in_short(report("onnxruntime", choice, "onnxruntime"), str)
    assert sentence.endswith(
        "than TVM when they were compared. 3 other candidates are refused, 1 of them by the budget "
        "of accuracy: the report has the reasons."
    )


def test_in_short_a_single_refusal_has_its_reason() -> None:
    choice = RuntimeChoice(refused=(ODD,))
    (sentence,) = shipped_in_short(report("onnxruntime", choice, "onnxruntime"), str)
    assert sentence.endswith("ONNX Runtime (TVM: operator Odd is not supported).")


def test_schedules_that_were_picked_are_a_fact_of_what_ships() -> None:
    made = report("tvm", None, "tvm")
    assert made.run is not None
    (built,) = made.run.builds
    assert built.head is not None
    first, *others = built.head.tasks
    tasks = (msgspec.structs.replace(first, source="prior", ms=None), *others)
    head = msgspec.structs.replace(built.head, tasks=tasks)
    run = msgspec.structs.replace(made.run, builds=(msgspec.structs.replace(built, head=head),))
    (sentence,) = shipped(msgspec.structs.replace(made, run=run), str)
    assert sentence.endswith(
        "ships with TVM; 1 of 10 kernels runs a schedule that the prior picked, unmeasured alone."
    )
