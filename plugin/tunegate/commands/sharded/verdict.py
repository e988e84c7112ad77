"""`tunegate verdict`: what all measuring shards of a plan come to. Needs no device, no compiler."""

from __future__ import annotations

import msgspec

from tunegate import pipeline
from tunegate.artifacts.outcomes import TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.verdicts import Report
from tunegate.cli.commands.verdict import VerdictOptions
from tunegate.commands.remembering import remember
from tunegate.commands.reporting import finish
from tunegate.edges.output.directory import opened_output
from tunegate.handover import (
    binding,
    check_config_digest,
    read_measurements,
    read_outcomes,
    read_plan,
)
from tunegate.measuring.merge_shards import merge_shards
from tunegate.policy.gate_rules import with_configured
from tunegate.project import Review, open_project
from tunegate.settings import Settings
from tunegate.sides.export_models import is_measured
from tunegate.tuning.merge import merge_outcomes
from tunegate.verdict.judged import Judged
from tunegate.wiring import judging_rules


def run(options: VerdictOptions) -> int:
    """A shard that is lost, or not of this plan, is no pass for any of its models."""
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "verdict") as out:
        planned = read_plan(out.path)
        project.require_plan(planned, settings)
        outcomes = merge_outcomes(read_outcomes(out.path, planned))
        review = project.review_of(planned.changes)
        check_config_digest(planned, out.path, review.config)
        out.forget(since="gate")
        if not any(map(is_measured, review.changes.models)):
            nothing = pipeline.nothing_to_do(review.config, review.changes, out.path)
            return finish(nothing, settings)
        report = _decided(planned, outcomes, review, settings)
        remember(report, review.config, project.repository)
        return finish(report, settings)


def _decided(
    planned: TuningPlan, outcomes: tuple[TuningOutcome, ...], review: Review, settings: Settings
) -> Report:
    """Raises ArtifactError for measurements of no shard of the plan."""
    rules = with_configured(judging_rules(settings, review), review.config, planned.changes)
    merged = merge_shards(
        planned.measuring, read_measurements(settings.out), binding(planned, outcomes, rules)
    )
    machines = {shard.machine for shard in merged.run.shards} if merged.run else set()
    judged = Judged(
        changes=review.changes,
        plan=msgspec.structs.replace(planned, changes=review.changes),
        outcomes=outcomes,
        unmeasured=merged.unmeasured,
        machine=", ".join(sorted(machines)),
    )
    return pipeline.decide(merged.run, judged, rules, settings.out)
