import datetime
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.report.budgeted import make_error
from tests.support import report_parts as parts
from tests.support.present import present
from tests.support.reports import make_report
from tunegate.artifacts import inputs
from tunegate.artifacts.builds import CandidateTime, RefusedCandidate, RuntimeChoice
from tunegate.artifacts.verdicts import ISSUE_TO_WRITE, REASON_TO_WRITE, Report, Waiver, WaiverOffer
from tunegate.report import sentences
from tunegate.report.report_tables import values_in_words
from tunegate.report.waiver_text import waiver_text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"tasks": 2, "exact": 1, "tuned": 1, "trials": 1, "seconds": 2.0, "usd": 0.5},
            (
                "1 trial in 2.0 s, 0.5000 USD, ended early: nothing more to try. "
                "Of 2 tasks: 1 known before, 1 tuned now"
            ),
        ),
        ({"tasks": 1, "exact": 1}, "no trial, nothing to tune. The only task was known before"),
        ({"tasks": 4, "exact": 4}, "no trial, nothing to tune. All 4 tasks were known before"),
        (
            {"tasks": 4, "exact": 1, "waiting": 3},
            (
                "no trial, base and head share every untuned task. Of 4 tasks: 1 known "
                "before, 3 left to tunegate warm"
            ),
        ),
        (
            {"tasks": 4, "exact": 4, "trials": 9, "tried_again": 2},
            (
                "9 trials in 0 s, ended early: nothing more to try. All 4 tasks were known before, "
                "2 of them tried again"
            ),
        ),
        (
            {"tasks": 3, "exact": 0, "begun": 2, "trials": 4, "stopped": "usd", "joules": 9.0},
            "4 trials in 0 s, 9 J, money budget spent. Of 3 tasks: 2 begun, 1 not tuned",
        ),
        (
            {"tasks": 9, "exact": 1, "transfer": 6, "miss": 2, "waiting": 2, "stopped": "usd"},
            (
                "no trial, no budget for a trial. Of 9 tasks: 1 known before, 2 left to tunegate "
                "warm, 6 not tuned"
            ),
        ),
        (
            {"tasks": 539, "exact": 539, "kept": 412, "lost": 37, "not_asked": 90},
            (
                "no trial, finished. Of 539 tasks: 449 known before, 90 known to an older "
                "toolchain only. Schedules of an older toolchain: kept 412, lost to defaults 37, "
                "not yet asked 90"
            ),
        ),
        (
            {"tasks": 3, "exact": 3, "kept": 2, "still_lost": 1, "trials": 3},
            (
                "3 trials in 0 s, ended early: nothing more to try. All 3 tasks were known before. "
                "Schedules of an older toolchain: kept 2, lost to defaults 0, not yet asked 0, "
                "slower than defaults as before 1"
            ),
        ),
        ({"tasks": 0, "exact": 0}, "nothing here is compiled"),
    ],
)
def test_tuning_is_one_sentence_and_the_rest_another(fields: dict[str, float], said: str) -> None:
    assert sentences.tuning_words(parts.summary(**fields)) == said


def test_what_the_cache_had_is_told_in_the_counts_of_the_verdict() -> None:
    tuning = parts.summary(tasks=31, exact=16, transfer=13, unfinished=2, miss=2)
    told = sentences.cache_words(tuning, parts.cache(exact=7, misses={"absent": 2}))
    assert told == (
        "16 of 31 tasks were known before; of the other 15: 2 begun by an earlier run, "
        "11 with schedules of other shapes, 2 unknown."
    )


@given(
    exact=st.integers(0, 99),
    unfinished=st.integers(0, 99),
    near=st.integers(0, 99),
    miss=st.integers(0, 99),
)
def test_the_numbers_add_up_to_all_tasks(exact: int, unfinished: int, near: int, miss: int) -> None:
    tasks = exact + unfinished + near + miss
    tuning = parts.summary(
        tasks=tasks, exact=exact, transfer=near + unfinished, unfinished=unfinished, miss=miss
    )
    told = sentences.cache_words(tuning, parts.cache())
    words = told.replace("(", "").replace(":", "").split()
    counts = [int(word) for word in words if word.isdigit()]
    told_of_others = tasks - exact
    beginning = [exact, tasks] if exact else [tasks]
    if tasks:
        assert counts[: len(beginning)] == beginning
        times = 2 if exact else 1
        assert sum(counts[len(beginning) :]) == times * told_of_others


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (inputs.Normal(), "standard normal"),
        (inputs.Normal(123.675, 58.395), "normal, 123.7 ± 58.4"),
        (inputs.Integers(0, 30521), "0 to 30521"),
        (inputs.Constant(16000), "always 16000"),
        (inputs.OneOf(tuple("abcdef")), "one of a, b, c, d and 2 more"),
        (inputs.OneOf(("a",), words=8), "words of a"),
        (
            inputs.Columns(1, (inputs.Integers(0, 2), inputs.Integers(0, 2), inputs.Normal())),
            "column 0 to 1: 0 to 2; column 2: standard normal",
        ),
        (inputs.Files(("x.npy", "z.npy")), "2 cases, one in each launch"),
    ],
)
def test_values_are_told_in_a_few_words(values: inputs.Drawn, words: str) -> None:
    assert values_in_words(inputs.DrawnInput("x", (1,), "int64", inputs.InputRule(values))) == words


TITLES = {"tvm": "TVM", "onnxruntime": "ONNX Runtime", "third": "Third"}


def times(**milliseconds: float) -> RuntimeChoice:
    return RuntimeChoice(
        times=tuple(
            CandidateTime(candidate=name, title=TITLES[name], ms=ms)
            for name, ms in milliseconds.items()
        )
    )


def report(runtime: str, choice: RuntimeChoice | None) -> Report:
    """Both sides ship with the runtime."""
    made = make_report("slowed")
    assert made.run is not None
    built = made.run.builds[0]
    how = {"runtime": runtime, "title": TITLES[runtime]}
    base, head = replace(present(built.base), **how), replace(present(built.head), **how)
    replaced = replace(built, base=base, head=replace(head, choice=choice))
    return replace(made, run=replace(made.run, builds=(replaced,)))


ODD = RefusedCandidate(candidate="tvm", title="TVM", reason="operator Odd is not supported.")
ERROR = make_error(28.0, 24.3, 44.3)
BOTH = times(tvm=8.0, onnxruntime=6.0)


@pytest.mark.parametrize(
    ("runtime", "choice", "said"),
    [
        ("onnxruntime", BOTH, "ONNX Runtime, 25% faster than TVM when they were compared."),
        (
            "tvm",
            times(tvm=4.04, onnxruntime=4.0),
            "TVM, 1% slower than ONNX Runtime (not clearly) when they were compared.",
        ),
        (
            "third",
            times(tvm=8.0, onnxruntime=6.0, third=3.0),
            ("Third, 50% faster than ONNX Runtime, 62% faster than TVM when they were compared."),
        ),
        (
            "onnxruntime",
            RuntimeChoice(reason="not measured: no answer in 120 s", refused=(ODD,)),
            "(not measured: no answer in 120 s; TVM: operator Odd is not supported).",
        ),
    ],
)
def test_the_sentence_says_what_ships_and_what_it_saves(
    runtime: str, choice: RuntimeChoice, said: str
) -> None:
    (sentence,) = sentences.shipped_sentences(report(runtime, choice), str)
    assert "ships with" in sentence
    assert sentence.endswith(said)


def test_in_short_it_counts_those_that_are_refused() -> None:
    off = RefusedCandidate(candidate="third", title="Third", reason="off", error=ERROR)
    choice = replace(BOTH, refused=(off, ODD, ODD))
    (sentence,) = sentences.shipped_in_short(report("onnxruntime", choice), str)
    assert sentence.endswith(
        "than TVM when they were compared. 3 other candidates are refused, 1 of them by the "
        "accuracy budget: the report has the reasons."
    )


def test_in_short_a_single_refusal_has_its_reason() -> None:
    choice = RuntimeChoice(refused=(ODD,))
    (sentence,) = sentences.shipped_in_short(report("onnxruntime", choice), str)
    assert sentence.endswith("ONNX Runtime (TVM: operator Odd is not supported).")


def test_schedules_that_were_picked_are_a_fact_of_what_ships() -> None:
    made = report("tvm", None)
    assert made.run is not None
    (built,) = made.run.builds
    assert built.head is not None
    first, *others = built.head.tasks
    tasks = (replace(first, source="prior", ms=None), *others)
    head = replace(built.head, tasks=tasks)
    run = replace(made.run, builds=(replace(built, head=head),))
    (sentence,) = sentences.shipped_sentences(replace(made, run=run), str)
    assert sentence.endswith(
        "ships with TVM; 1 of 10 kernels runs a schedule that the prior picked, unmeasured alone."
    )


def offer(*models: str, source: Literal["base", "head"] = "base") -> WaiverOffer:
    waivers = tuple(
        Waiver(
            model=model,
            target="cpu",
            ceiling_percent=16,
            expires=datetime.date(2026, 12, 25),
            issue=ISSUE_TO_WRITE,
            reason=REASON_TO_WRITE,
        )
        for model in models
    )
    return WaiverOffer(waivers=waivers, counts_from=source)


@given(st.text(min_size=1, max_size=60))
def test_any_name_comes_back_from_the_block(name: str) -> None:
    text = waiver_text(offer(name))
    assert text.count("\n```") == 2
    (entry,) = yaml.safe_load(text.split("```yaml\n")[1].split("\n```")[0])["waivers"]
    assert entry["model"] == name
    assert (entry["issue"], entry["reason"]) == (ISSUE_TO_WRITE, REASON_TO_WRITE)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("base", "Then push to this branch, or rebase it: a re-run job may have the old commit"),
        ("head", "The file of this branch counts"),
    ],
)
def test_it_says_where_the_waiver_counts(source: Literal["base", "head"], said: str) -> None:
    assert said in waiver_text(offer("m.onnx", source=source))
