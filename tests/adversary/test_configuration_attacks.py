"""Attacks by an edited `tunegate.yaml`, each as base and head of the configuration."""

import datetime
import json
from typing import Any

import msgspec
import pytest

from tests.adversary.pull_request import GATED, MODEL, SLOW_LAYERS, WIDTH, PullRequest
from tests.support.small_onnx import chain_model, matmul_model, save
from tunegate.artifacts.changes import PolicyChange
from tunegate.config import (
    BudgetConfig,
    CacheConfig,
    Config,
    GateConfig,
    ModelConfig,
    ObjectiveConfig,
    TargetConfig,
)
from tunegate.review.effective_config import Effective, effective
from tunegate.review.model_settings import entry_for, needs_of

PATHS = ("a/x.onnx", "a/y.onnx")


def judging(base: Config, head: Config) -> Effective:
    return effective(base, head, {path: path for path in PATHS}, lambda _: None)


USUAL = Config(
    models=(ModelConfig(path="a/*.onnx", objective=ObjectiveConfig(ms=20)),),
    targets=(TargetConfig(name="cpu"), TargetConfig(name="gpu", kind="cuda")),
    cache=CacheConfig(trusted_keys={"main": ("k",)}),
)
WITHOUT_ENTRY = ModelConfig(path="b/*.onnx")
ONE_TARGET = ModelConfig(path="a/*.onnx", targets=("cpu",), objective=ObjectiveConfig(ms=20))
ATTACKS: dict[str, tuple[dict[str, object], PolicyChange]] = {}


def attack(key: str, old: str, new: str, effect: str, **fields: object) -> None:
    place = {name: str(fields.pop(name)) for name in ("model", "target") if name in fields}
    ATTACKS[f"{key} {new}"] = (
        fields,
        PolicyChange(key=key, old=old, new=new, effect=effect, counts="once merged", **place),  # type: ignore[arg-type]
    )


attack(
    "gate.absolute-floor-us", "0.5", "1000000", "loosened", gate=GateConfig(absolute_floor_us=1e6)
)
attack("gate.margin-percent", "3", "60", "loosened", gate=GateConfig(margin_percent=60))
attack("gate.waiver-trailers", "false", "true", "loosened", gate=GateConfig(waiver_trailers=True))
attack("gate.inconclusive", "fail", "warn", "loosened", gate=GateConfig(inconclusive="warn"))
attack("gate.waivers-from", "base", "head", "loosened", gate=GateConfig(waivers_from="head"))
attack("gate.seconds", "240", "1", "changed", gate=GateConfig(seconds=1))
attack("gate.pairs", "12", "4", "changed", gate=GateConfig(pairs=4))
attack("gate.release-tags", "v*", "none", "changed", gate=GateConfig(release_tags="none"))
attack("cache.trusted-keys", "{main: [k]}", "{}", "changed", cache=CacheConfig())
attack(
    "cache.zone",
    "main",
    "theirs",
    "changed",
    cache=CacheConfig(zone="theirs", trusted_keys={"main": ("k",)}),
)
attack(
    "cache.url",
    "~/.cache/tunegate",
    "s3://theirs",
    "changed",
    cache=CacheConfig(url="s3://theirs", trusted_keys={"main": ("k",)}),
)
attack("budget.trials", "not set", "0", "changed", budget=BudgetConfig(trials=0))
attack("budget.minutes", "10", "99", "changed", budget=BudgetConfig(minutes=99))
attack("executor", "local", "ray", "changed", executor="ray")
attack(
    "targets[].name",
    "gpu",
    "removed",
    "loosened",
    target="gpu",
    targets=(TargetConfig(name="cpu"),),
)
attack(
    "targets[].threads",
    "0",
    "64",
    "changed",
    target="cpu",
    targets=(TargetConfig(name="cpu", threads=64), TargetConfig(name="gpu", kind="cuda")),
)
attack(
    "models[].path",
    "a/*.onnx",
    "no entry matches it",
    "loosened",
    model="a/*.onnx",
    models=(WITHOUT_ENTRY,),
)
attack(
    "models[].objective",
    "{ms: 20, percentile: 99}",
    "not set",
    "loosened",
    model="a/*.onnx",
    models=(ModelConfig(path="a/*.onnx"),),
)
attack(
    "models[].objective.ms",
    "20",
    "99",
    "loosened",
    model="a/*.onnx",
    models=(ModelConfig(path="a/*.onnx", objective=ObjectiveConfig(ms=99)),),
)
attack(
    "models[].targets", "[cpu, gpu]", "[cpu]", "loosened", model="a/*.onnx", models=(ONE_TARGET,)
)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_by_the_configuration_has_no_effect_and_is_told(name: str) -> None:
    fields, told = ATTACKS[name]
    judged, changes = judging(USUAL, msgspec.structs.replace(USUAL, **fields))
    assert changes == (told,)
    sections = (judged.gate, judged.cache, judged.budget, judged.executor)
    assert sections == (USUAL.gate, USUAL.cache, USUAL.budget, USUAL.executor)
    for path in PATHS:
        entry = entry_for(judged, path)
        assert entry is not None
        assert entry.objective == ObjectiveConfig(ms=20)
        assert needs_of(judged, path) == needs_of(USUAL, path)


# The attack on one's own gate: a pull request edits its rules, or takes its model out of them.

WAIVER = (
    "model: models/m.onnx, target: cpu, ceiling-percent: 100000, "
    "issue: https://example.com/1, reason: mine"
)
LOOSENED = """\
  absolute-floor-us: 1000000
  margin-percent: 60
  inconclusive: warn
  waiver-trailers: true
  waivers-from: head
  policy-changes: report
"""


@pytest.mark.e2e
def test_loosened_rules_and_an_own_waiver_pass_no_slow_model(pull_request: PullRequest) -> None:
    pull_request.make_twice_as_slow()
    pull_request.edit_config("gate:\n", f"gate:\n{LOOSENED}")
    expires = datetime.datetime.now(tz=datetime.UTC).date() + datetime.timedelta(days=30)
    waiver = f"waivers: [{{{WAIVER}, expires: {expires}}}]\n"
    pull_request.write("tunegate-waivers.yaml", waiver)
    pull_request.workspace.commit()
    trailer = f"Faster\n\nTunegate-Waiver: {{{WAIVER}}}"
    pull_request.workspace.git("commit", "-q", "--allow-empty", "-m", trailer)
    judged = pull_request.judge(code=1)
    assert judged.verdict["margin_percent"] == 3
    (finding,) = judged.verdict["findings"]
    assert "over the 3% margin" in finding["reason"]
    assert "merge the waiver first" in finding["reason"]
    told = {change["key"] for change in judged.verdict["policy_changes"]}
    assert told == {
        *(f"gate.{line.split(':')[0].strip()}" for line in LOOSENED.splitlines()[:-1]),
        "tunegate-waivers.yaml",
    }
    first = judged.report.split("####")[1]
    assert "`gate.absolute-floor-us`: `0.5` → `1000000`" in first


@pytest.mark.e2e
def test_a_model_that_is_renamed_out_of_its_glob_is_compared_with_what_it_was(
    pull_request: PullRequest,
) -> None:
    """The suffix in capitals, another directory, another graph, and a glob that is moved away."""
    other = pull_request.root / "nets" / "other.onnx"
    save(matmul_model(), other)
    save(chain_model(layers=SLOW_LAYERS, width=WIDTH), pull_request.root / "attic" / "M2.ONNX")
    (pull_request.root / MODEL).unlink()
    pull_request.edit_config("models/*.onnx", "nets/*.onnx")
    judged = pull_request.judge(code=1)
    assert judged.status("attic/M2.ONNX") == "fail"
    assert judged.status("nets/other.onnx") == "new"
    (change,) = [each for each in judged.changes["models"] if each["path"] == "attic/M2.ONNX"]
    assert f"compared with {MODEL}, which it replaces" in change["reason"]
    (told,) = judged.verdict["policy_changes"]
    assert (told["key"], told["model"]) == ("models[].path", "attic/M2.ONNX")


@pytest.mark.e2e
def test_a_deleted_configuration_leaves_the_base_s_in_force(pull_request: PullRequest) -> None:
    pull_request.make_twice_as_slow()
    (pull_request.root / "tunegate.yaml").unlink()
    found = detected(pull_request)
    assert [change["path"] for change in found["models"]] == [MODEL]
    assert [change["new"] for change in found["policy_changes"]] == ["deleted"]


@pytest.mark.e2e
def test_a_broken_or_linked_configuration_is_an_error(pull_request: PullRequest) -> None:
    pull_request.write("tunegate.yaml", "models: [\n")
    assert pull_request.judge().exit_code == 2
    pull_request.write("mine.yaml", GATED.replace("pairs: 4", "pairs: 5"))
    (pull_request.root / "tunegate.yaml").unlink()
    (pull_request.root / "tunegate.yaml").symlink_to("mine.yaml")
    assert "tunegate.yaml is a symbolic link" in pull_request.judge(code=2).err


@pytest.mark.e2e
def test_a_merge_queue_judges_by_its_base(pull_request: PullRequest) -> None:
    pull_request.make_twice_as_slow()
    pull_request.edit_config("models/*.onnx", "models/none/*.onnx")
    save(matmul_model(), pull_request.root / "models" / "none" / "n.onnx")
    found = detected(pull_request, "--head", "pull-request")
    assert [change["path"] for change in found["models"]] == [MODEL, "models/none/n.onnx"]
    (told,) = found["policy_changes"]
    assert (told["old"], told["new"]) == ("models/*.onnx", "no entry matches it")


@pytest.mark.e2e
def test_a_model_that_is_a_submodule_or_a_link_now_is_an_error(pull_request: PullRequest) -> None:
    (pull_request.root / MODEL).unlink()
    (pull_request.root / MODEL).symlink_to("../weights.bin")
    judged = pull_request.judge()
    assert (judged.exit_code, judged.status()) == (2, "error")
    assert f"{MODEL} is a symbolic link in the head" in judged.report
    git = pull_request.workspace.git
    git("rm", "-q", "--cached", MODEL)
    (pull_request.root / MODEL).unlink()
    commit = "1" * 40
    git("update-index", "--add", "--cacheinfo", f"160000,{commit},{MODEL}")
    git("commit", "-q", "-m", "submodule")
    done = pull_request.workspace.tunegate("run", "--base", "main", code=2)
    assert f"{MODEL} is a submodule in the head" in done.stderr


@pytest.mark.e2e
def test_a_deleted_model_is_told_and_fails_if_the_base_says(pull_request: PullRequest) -> None:
    pull_request.edit_config("gate:\n", "gate:\n  policy-changes: fail\n")
    save(matmul_model(), pull_request.root / "models" / "stays.onnx")
    pull_request.commit_base()
    pull_request.workspace.git("branch", "-f", "main", "HEAD")
    (pull_request.root / MODEL).unlink()
    assert "policy-change, loosened" in pull_request.judge(code=1).report
    pull_request.edit_config("policy-changes: fail", "policy-changes: report")
    assert pull_request.judge().exit_code == 1


@pytest.mark.e2e
def test_a_gate_in_a_job_of_its_own_asks_the_base(pull_request: PullRequest) -> None:
    """Its plan says nothing of the rules, and its checkout is the attacker's."""
    pull_request.edit_config("gate:\n", "gate:\n  policy-changes: fail\n")
    pull_request.commit_base()
    pull_request.workspace.git("branch", "-f", "main", "HEAD")
    pull_request.edit_config("policy-changes: fail", "margin-percent: 60")
    pull_request.workspace.commit()
    assert pull_request.workspace.tunegate("plan", "--base", "main").returncode == 0
    assert pull_request.workspace.tunegate("gate").returncode == 1


@pytest.mark.e2e
def test_a_model_file_that_no_rule_covers_is_named(pull_request: PullRequest) -> None:
    save(matmul_model(), pull_request.root / "elsewhere" / "n.ONNX")
    judged = pull_request.judge(code=0)
    assert "No rule of this configuration covers 1 model file: `elsewhere/n.ONNX`" in judged.report


def detected(pull_request: PullRequest, *arguments: str) -> dict[str, Any]:
    pull_request.workspace.commit()
    done = pull_request.workspace.tunegate("detect", "--base", "main", "--json", *arguments, code=0)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
