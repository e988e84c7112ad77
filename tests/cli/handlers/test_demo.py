from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.support.report_parts import finding, summary, verdict
from tunegate.artifacts.builds import ErrorEstimate
from tunegate.artifacts.measurements import TaskDifference
from tunegate.artifacts.verdicts import CandidateOutcome, Status, Verdict
from tunegate.cli.handlers import demo
from tunegate.cli.handlers import demo as demo_repository
from tunegate.config import AccuracyConfig
from tunegate.models.graph import graph_digest
from tunegate.review.config_file import load_config

WANTED = {demo.first_problem: "new", demo.second_problem: "pass", demo.third_problem: "fail"}


def ended(status: Status, *slower: str, exact: int = 4, trials: int = 0) -> Verdict:
    differences = tuple(
        TaskDifference(
            name=name, base_ms=1.0, head_ms=2.0, source="library", library="ONNX Runtime"
        )
        for name in slower
    )
    found = finding(status, "why", differences=differences)
    return verdict(status, 0, found, tuning=summary(tasks=4, exact=exact, trials=trials))


def test_three_acts_that_go_as_expected_are_a_pass() -> None:
    problems = [
        demo.first_problem(ended("new")),
        demo.second_problem(ended("pass")),
        demo.third_problem(ended("fail", f"conv of {demo.SLOWED_LAYER}", "another")),
    ]
    assert problems == [None, None, None]
    assert demo.exit_code([]) == 0


@pytest.mark.parametrize("judge", WANTED)
@pytest.mark.parametrize(
    ("status", "code"),
    [("inconclusive", 3), ("invalid-env", 4), ("no-baseline", 4), ("error", 70), ("waived", 70)],
)
def test_a_machine_that_is_too_noisy_is_no_bug(judge: type, status: Status, code: int) -> None:
    problem = judge(ended(status))
    assert problem.exit_code == demo.exit_code([problem]) == code
    assert ("while nothing else runs" in problem.text) == (code != 70)


@pytest.mark.parametrize(
    ("slower", "code"), [((), 4), (("another", demo.SLOWED_LAYER), 4), (("another",), 70)]
)
def test_a_slow_layer_not_named_first_was_disturbed(slower: tuple[str, ...], code: int) -> None:
    problem = demo.third_problem(ended("fail", *slower))
    assert problem is not None
    assert problem.exit_code == code


def test_what_the_machine_explains_comes_before_a_bug() -> None:
    assert demo.exit_code([demo.Problem("", 70), demo.Problem("", 3), demo.Problem("", 4)]) == 4
    assert demo.exit_code([demo.Problem("", 70), demo.Problem("", 3)]) == 3
    assert demo.exit_code([demo.Problem("", 70)]) == 70


def outcome(title: str, ms: float | None = None, **fields: object) -> CandidateOutcome:
    return CandidateOutcome(candidate=title, title=title, ms=ms, **{"ships": False, **fields})  # type: ignore[arg-type]  # a builder


def test_each_candidate_of_an_election_is_a_line() -> None:
    off = ErrorEstimate(what="max-error", center=1.5, low=1.2, high=2.0, samples=74)
    lines = list(
        demo.election_lines(
            [
                outcome("TVM", 4.0),
                outcome("OpenVINO (float16)", reason="it has no avx512_fp16"),
                outcome("OpenVINO (bfloat16)", 1.0, ships=True, error=off),
                outcome("TVM (int8)", 2.0, has_unknown_error=True),
            ]
        )
    )
    assert lines == [
        "ships OpenVINO (bfloat16): error 1.5% (1.2 to 2)",
        "      TVM (int8): error not measured in this run; what ships is 50% faster",
        "      TVM: float32; what ships is 75% faster",
        "      OpenVINO (float16): it has no avx512_fp16",
    ]
    assert list(demo.election_lines([outcome("TVM", 4.0)])) == []


def test_the_demo_starts_with_one_commit_of_a_model_whatever_the_user_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ignored").write_text("*.onnx\n")
    (tmp_path / "settings").write_text(f"[core]\nexcludesFile = {tmp_path}/ignored\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    model = demo_repository.network()
    policy = demo_repository.DemoPolicy(cache=tmp_path / "c", minutes=2, pairs=6, margin_percent=3)
    repository = demo_repository.create(tmp_path / "r", model, policy)
    assert repository.lines("ls-files") == [str(demo_repository.DEMO_MODEL), "tunegate.yaml"]


@pytest.mark.parametrize("percent", [None, 5.0])
def test_the_configuration_of_the_demo_is_one(tmp_path: Path, percent: float | None) -> None:
    policy = demo_repository.DemoPolicy(
        cache=tmp_path / "a: #c", minutes=2, pairs=6, margin_percent=3, max_error_percent=percent
    )
    demo_repository.create(tmp_path / "r", demo_repository.network(is_quick=True), policy)
    config = load_config(tmp_path / "r" / "tunegate.yaml")
    assert config.cache.url == str(tmp_path / "a: #c")
    (entry,) = config.models
    assert entry.accuracy == ("same" if percent is None else AccuracyConfig(max_error=percent))


@pytest.mark.parametrize("is_quick", [False, True])
def test_the_second_act_changes_weights_only_and_the_third_the_graph(is_quick: bool) -> None:
    first, retrained = (demo_repository.network(seed, is_quick=is_quick) for seed in (0, 1))
    slowed = demo_repository.slow_network(is_quick=is_quick)
    digest = graph_digest(first.SerializeToString())
    assert graph_digest(retrained.SerializeToString()) == digest
    assert retrained.SerializeToString() != first.SerializeToString()
    assert graph_digest(slowed.SerializeToString()) != digest


@pytest.mark.parametrize("is_quick", [False, True])
def test_the_slowed_model_still_runs(is_quick: bool) -> None:
    model = demo_repository.slow_network(is_quick=is_quick)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (taken,) = session.get_inputs()
    (output,) = session.run(None, {taken.name: np.ones(taken.shape, np.float32)})
    assert np.isfinite(output).all()


def test_the_quick_network_computes_what_the_whole_one_does_there() -> None:
    whole = demo_repository.network()
    end = "r31"
    for name in ("r24", end):
        whole.graph.output.add(name=name)
    session = onnxruntime.InferenceSession(whole.SerializeToString())
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
    taken, wanted = session.run(["r24", end], {session.get_inputs()[0].name: image})
    quick = demo_repository.network(is_quick=True)
    alone = onnxruntime.InferenceSession(quick.SerializeToString())
    (found,) = alone.run(None, {"r24": taken})
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
