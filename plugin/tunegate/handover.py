"""Checks the files of earlier steps, perhaps of another job: they must belong together, to this
checkout and to this configuration."""

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tunegate import __version__
from tunegate.artifacts import artifact_io
from tunegate.artifacts.artifact_io import digest_of, digest_of_document
from tunegate.artifacts.changes import ChangeSet, ModelPath, ModelVersion, Revisions
from tunegate.artifacts.measurements import ShardBinding, ShardMeasurements
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import PlanOrigin, TuningPlan
from tunegate.artifacts.tasks import TaskSet
from tunegate.config import BudgetConfig, CacheConfig, Config, GateConfig
from tunegate.config_key import keys_of
from tunegate.errors import ArtifactError
from tunegate.measure.merge_shards import HandedShard
from tunegate.review.gate_rules import GateRules, Policies, rules_digest

_PLAN_AGAIN = "Run tunegate plan again."


def origin_of(changes: ChangeSet, tasks: TaskSet, config: Config) -> PlanOrigin:
    """Returns the origin that binds a plan to these."""
    return PlanOrigin(
        version=__version__,
        changes=digest_of(changes),
        tasks=digest_of(tasks),
        config=_digest_of_config(config),
    )


def read_plan(out: Path) -> TuningPlan:
    """Returns the plan. Raises ArtifactError for one of another version, or beside files of another
    plan."""
    path = out / "plan.json"
    plan = artifact_io.read(path, TuningPlan)
    origin = plan.origin
    if origin is None or origin.version != __version__:
        version = origin.version if origin is not None else "an older version"
        message = f"{path}: made by tunegate {version}, and this is {__version__}. {_PLAN_AGAIN}"
        raise ArtifactError(message)
    _refuse_other(out / "changes.json", ChangeSet, origin.changes)
    _refuse_other(out / "tasks.json", TaskSet, origin.tasks)
    return plan


def check_revisions(
    plan: TuningPlan, out: Path, *, head: str | None, base: str | None, policy: str | None
) -> None:
    """Raises ArtifactError for a plan of another head, or of another base or policy than named."""
    revisions = plan.changes.revisions
    for name, revision, plan_revision in (
        ("head", head, revisions.head),
        ("base", base, revisions.base),
        ("policy", policy, revisions.policy),
    ):
        if revision is not None and revision != plan_revision:
            message = (
                f"{out / 'plan.json'}: made for {name} {_short_commit(plan_revision)}, and this is "
                f"{_short_commit(revision)}. {_PLAN_AGAIN} Or name the plan's own with --{name}."
            )
            raise ArtifactError(message)


def check_release(of_plan: Revisions, current: Revisions) -> None:
    """Raises ArtifactError if a plan since a release is of another release than the tags tell."""
    if (of_plan.base, of_plan.release, of_plan.policy) != (
        current.base,
        current.release,
        current.policy,
    ):
        message = (
            f"the plan is of everything since {of_plan.release or 'no release'}, and the release "
            f"before is {current.release}. {_PLAN_AGAIN}"
        )
        raise ArtifactError(message)


def check_changes(of_plan: ChangeSet, current: ChangeSet) -> None:
    """Raises ArtifactError if a plan does not match the difference of its revisions."""
    older = frozenset(model.path for model in of_plan.models if model.ancestor is not None)
    if _subjects(of_plan, older) != _subjects(current, older):
        message = f"the plan is not of the models that differ between its revisions. {_PLAN_AGAIN}"
        raise ArtifactError(message)


def check_config_digest(plan: TuningPlan, out: Path, config: Config) -> None:
    """Raises ArtifactError if the configuration has changed since."""
    if plan.origin is not None and plan.origin.config != _digest_of_config(config):
        message = (
            f"{out / 'plan.json'}: made with another configuration (models, targets, executor or "
            f"gate). {_PLAN_AGAIN}"
        )
        raise ArtifactError(message)


def read_outcomes(out: Path, plan: TuningPlan) -> Sequence[TuningOutcome]:
    """Returns the outcomes of the tuned shards. Raises ArtifactError for one of another plan."""
    plan_digest = digest_of(plan)
    shards = {shard.index: shard.target for shard in plan.shards}
    outcomes = []
    for path in sorted(out.glob("outcome-*.json")):
        outcome = artifact_io.read(path, TuningOutcome)
        if outcome.plan != plan_digest or shards.get(outcome.shard) != outcome.target:
            message = (
                f"{path}: not of a shard of {out / 'plan.json'}. "
                "Remove it, or tune the shard again."
            )
            raise ArtifactError(message)
        outcomes.append(outcome)
    return outcomes


def binding(plan: TuningPlan, outcomes: Sequence[TuningOutcome], rules: GateRules) -> ShardBinding:
    """Returns what binds measurements to this plan. Of the rules only those on measuring count: a
    waiver may be written in between."""
    subset = GateRules(gate=rules.gate, policies=Policies(objectives=rules.policies.objectives))
    return ShardBinding(
        plan=digest_of(plan),
        rules=rules_digest(subset),
        outcomes=digest_of_document([digest_of(outcome) for outcome in outcomes]),
    )


def read_measurements(out: Path) -> Sequence[HandedShard]:
    """Returns the measurements of each runner. An unreadable file gets its problem in its place."""
    return [_read_shard_files(path) for path in sorted(out.glob("measurements-*.json"))]


def _read_shard_files(path: Path) -> HandedShard:
    match = re.match(r"measurements-([0-9]+)", path.name)
    shard = int(match[1]) if match else None
    try:
        content = artifact_io.read(path, ShardMeasurements)
    except ArtifactError as error:
        problem, _, _ = str(error).partition(" Run the step")  # the finding names the step
        return HandedShard(name=path.name, shard=shard, problem=problem)
    return HandedShard(name=path.name, shard=shard, content=content)


def _subjects(changes: ChangeSet, older: frozenset[ModelPath]) -> frozenset[tuple[object, ...]]:
    """Returns the subjects that are built and measured. `older` bases, before a base revision that
    cannot be compiled, are known to the plan only."""
    return frozenset(
        (
            change.path,
            change.kind,
            change.targets,
            *(
                (side, None if side == "base" and change.path in older else _content(version))
                for side, version in change.compiled_sides.items()
            ),
        )
        for change in changes.models
    )


def _content(version: ModelVersion) -> tuple[object, ...]:
    return version.path, version.content_digest, version.external


def _refuse_other(path: Path, kind: type[msgspec.Struct], digest: str) -> None:
    """Raises ArtifactError if the file exists and is not the one that the plan was made of. A step
    need not have it."""
    if path.exists() and digest_of(artifact_io.read(path, kind)) != digest:
        message = f"{path}: not the one that {path.parent / 'plan.json'} was made of. {_PLAN_AGAIN}"
        raise ArtifactError(message)


def _digest_of_config(config: Config) -> str:
    """Returns the digest of a configuration, without what each step's command line may set and what
    only tuning reads."""
    usual = GateConfig()
    optional = {
        name: getattr(usual, name)
        for each in keys_of(GateConfig)
        if each.key.flag
        for name in filter(None, (each.field, each.key.also))
    }
    gate = msgspec.structs.replace(config.gate, **optional)
    return digest_of(
        msgspec.structs.replace(config, budget=BudgetConfig(), cache=CacheConfig(), gate=gate)
    )


def _short_commit(commit: str | None) -> str:
    return commit[:12] if commit else "nothing"
