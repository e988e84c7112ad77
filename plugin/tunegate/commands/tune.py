"""`tunegate tune`: one shard of a plan. Needs the plan, the repository and the cache, no more."""

from __future__ import annotations

from tunegate import pipeline
from tunegate.artifacts.plans import Shard, TuningPlan
from tunegate.cli.commands.tune import TuneOptions
from tunegate.commands.standard_output import write_json
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS, ConfigError
from tunegate.handover import check_config_digest, read_plan
from tunegate.project import open_project
from tunegate.runtimes.requirements import require_installed
from tunegate.settings import Settings
from tunegate.stages.resolve import refreshed
from tunegate.wiring import opened_tools


def run(options: TuneOptions) -> int:
    """Writes outcome-<shard>.json. After a kill it goes on from what the cache has by now."""
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "tune") as out:
        planned = read_plan(out.path)
        project.require_plan(planned, settings)
        chosen = _chosen(planned, options.shard, settings)
        review = project.review_of(planned.changes)
        check_config_digest(planned, out.path, review.config)
        require_installed(review.config, "tune", {chosen.target})
        with opened_tools(settings, project.reviewed(review), out) as tools:
            outcome = pipeline.tune_shard(tools, planned, refreshed(chosen, tools.index))
    if settings.as_json:
        write_json(outcome)
    return PASS


def _chosen(planned: TuningPlan, shard: int, settings: Settings) -> Shard:
    chosen = next((s for s in planned.shards if s.index == shard), None)
    if chosen is None:
        known = ", ".join(str(s.index) for s in planned.shards)
        what = f"which has {known}" if known else "which has none: nothing is left to tune"
        message = f"--shard {shard}: not in {settings.out / 'plan.json'}, {what}."
        raise ConfigError(message)
    return chosen
