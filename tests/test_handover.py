from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import report_parts as parts
from tests.support.outcome_parts import outcome
from tunegate import handover
from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of
from tunegate.artifacts.changes import Ancestor, ChangeSet, ModelChange
from tunegate.artifacts.plans import PlanOrigin, TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.config import BudgetConfig, CacheConfig, Config, GateConfig, ModelConfig, TargetConfig
from tunegate.errors import USAGE, ArtifactError

CONFIG = Config(models=(ModelConfig(path="*.onnx"),))
CHANGES = parts.changes(parts.change())
TASKS = TaskSet(changes=CHANGES, tasks=())
OTHER = "c" * 40
BASE, HEAD = parts.REVISIONS.base, parts.REVISIONS.head
ORIGIN = handover.origin_of(CHANGES, TASKS, CONFIG)
PLAN = replace(parts.plan(CHANGES, parts.cache()), origin=ORIGIN)
OUTCOME = outcome(plan=digest_of(PLAN))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The directory as the step that plans leaves it."""
    artifact_io.write(tmp_path / "changes.json", CHANGES)
    artifact_io.write(tmp_path / "tasks.json", TASKS)
    artifact_io.write(tmp_path / "plan.json", PLAN)
    artifact_io.write(tmp_path / "outcome-0.json", OUTCOME)
    return tmp_path


def test_what_belongs_together_is_taken(out: Path) -> None:
    plan = handover.read_plan(out)
    handover.check_revisions(plan, out, head=HEAD, base=BASE, policy="")
    handover.check_config_digest(plan, out, CONFIG)
    assert plan == PLAN
    assert handover.read_outcomes(out, plan) == [OUTCOME]


def test_a_job_may_have_been_handed_the_plan_alone(out: Path) -> None:
    for name in ("changes.json", "tasks.json", "outcome-0.json"):
        (out / name).unlink()
    assert handover.read_outcomes(out, handover.read_plan(out)) == []


@pytest.mark.parametrize("name", ["changes.json", "tasks.json"])
def test_files_of_another_plan_are_refused(name: str, out: Path) -> None:
    kind = ChangeSet if name == "changes.json" else TaskSet
    other = replace(artifact_io.read(out / name, kind), notes=("of another run",))
    artifact_io.write(out / name, other)
    with pytest.raises(ArtifactError, match=rf"{name}: not the one that .*plan\.json was made of"):
        handover.read_plan(out)


@pytest.mark.parametrize("origin", [None, replace(ORIGIN, version="0.0.1")])
def test_a_plan_of_another_version_is_refused(origin: PlanOrigin | None, out: Path) -> None:
    artifact_io.write(out / "plan.json", replace(PLAN, origin=origin))
    with pytest.raises(ArtifactError, match=r"made by tunegate .* Run tunegate plan again"):
        handover.read_plan(out)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"head": OTHER}, f"made for head {HEAD[:12]}, and this is cccccccccccc"),
        ({"base": OTHER}, f"made for base {str(BASE)[:12]}, and this is cccccccccccc"),
        ({"policy": OTHER}, "made for policy nothing, and this is cccccccccccc"),
    ],
)
def test_a_plan_of_other_revisions_is_refused(named: dict[str, str], said: str, out: Path) -> None:
    with pytest.raises(ArtifactError, match=said) as refused:
        handover.check_revisions(PLAN, out, **{"head": HEAD, "base": None, "policy": None, **named})
    assert refused.value.exit_code == USAGE


@pytest.mark.parametrize(
    "config",
    [
        replace(CONFIG, models=(ModelConfig(path="other.onnx"),)),
        replace(CONFIG, targets=(TargetConfig(name="cpu", threads=2),)),
        replace(CONFIG, gate=GateConfig(absolute_floor_us=1000.0)),
        replace(CONFIG, executor="ray"),
    ],
)
def test_a_plan_of_another_configuration_is_refused(config: Config, out: Path) -> None:
    with pytest.raises(ArtifactError, match="made with another configuration"):
        handover.check_config_digest(PLAN, out, config)


@pytest.mark.parametrize(
    "config",
    [
        replace(CONFIG, budget=BudgetConfig(minutes=1.0)),
        replace(CONFIG, cache=CacheConfig(zone="pr/x/1")),
        replace(CONFIG, gate=GateConfig(margin_percent=1.0, release_margin_percent=2.0)),
        replace(CONFIG, gate=GateConfig(seconds=9.0, min_launches=6, tail_margin_percent=5.0)),
    ],
)
def test_each_step_may_have_options_of_its_own(config: Config, out: Path) -> None:
    handover.check_config_digest(PLAN, out, config)


@pytest.mark.parametrize(
    "fields", [{"plan": ""}, {"plan": "a" * 64}, {"shard": 7}, {"target": "gpu"}]
)
def test_an_outcome_of_another_plan_is_refused(fields: dict[str, Any], out: Path) -> None:
    artifact_io.write(out / "outcome-0.json", replace(OUTCOME, **fields))
    with pytest.raises(ArtifactError, match=r"outcome-0\.json: not of a shard of .*plan\.json"):
        handover.read_outcomes(out, PLAN)


CHANGE = parts.change()


@pytest.mark.parametrize(
    "planned",
    [
        parts.changes(),
        parts.changes(parts.change(kind="renamed", change=None)),
        parts.changes(parts.change(kind="added", change=None, base=None)),
        parts.changes(parts.change(targets=())),
        parts.changes(parts.change(base=CHANGE.head)),
        parts.changes(parts.change(head=CHANGE.base)),
        parts.changes(parts.change(base=None, ancestor=Ancestor(commits=1, reason="no model"))),
    ],
)
def test_a_plan_of_other_models_than_git_has_is_refused(planned: ChangeSet) -> None:
    with pytest.raises(ArtifactError, match="not of the models that differ"):
        handover.check_changes(planned, parts.changes(CHANGE))


def test_a_plan_does_not_say_that_an_unreadable_model_was_renamed() -> None:
    renamed, unreadable = (
        parts.change(kind=kind, change=None) for kind in ("renamed", "unreadable")
    )
    with pytest.raises(ArtifactError, match="not of the models that differ"):
        handover.check_changes(parts.changes(renamed), parts.changes(unreadable))


SINCE = replace(parts.REVISIONS, release="v1.0", policy="d" * 40)


@pytest.mark.parametrize("fields", [{"release": "v0.9"}, {"policy": "e" * 40}, {"base": "f" * 40}])
def test_a_plan_since_another_release_than_the_tags_have_is_refused(fields: dict[str, str]) -> None:
    handover.check_release(SINCE, SINCE)
    with pytest.raises(ArtifactError, match=r"and the release before is v1\.0"):
        handover.check_release(replace(SINCE, **fields), SINCE)


def older(change: ModelChange) -> ModelChange:
    version = parts.version(change.path, "f" * 40, "e" * 64)
    return replace(change, base=version, ancestor=Ancestor(commits=1, reason="no model"))


def test_a_base_that_could_not_be_compiled_is_older_in_the_plan() -> None:
    handover.check_changes(parts.changes(older(CHANGE)), parts.changes(CHANGE))


def test_what_says_only_how_a_model_differs_may_be_known_here_and_not_there() -> None:
    handover.check_changes(parts.changes(parts.change(change="unknown")), parts.changes(CHANGE))


def test_a_plan_has_one_digest_in_memory_and_in_its_file(out: Path) -> None:
    assert digest_of(artifact_io.read(out / "plan.json", TuningPlan)) == digest_of(PLAN)


def test_cut_measurements_have_a_problem_and_the_finding_the_advice(tmp_path: Path) -> None:
    (tmp_path / "measurements-3.json").write_text('{"schema":')
    (shard,) = handover.read_measurements(tmp_path)
    assert (shard.shard, shard.content) == (3, None)
    assert shard.problem.endswith("(Input data was truncated).")
