"""`tunegate plan`: what to tune where, and what it will cost."""

from __future__ import annotations

import json
from pathlib import Path

from tunegate import artifact_io, pipeline
from tunegate.artifacts.plans import TuningPlan
from tunegate.cli.commands.plan import PlanOptions
from tunegate.commands.standard_output import write_json, write_line
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS
from tunegate.plurals import plural
from tunegate.project import open_project
from tunegate.render.escape import visible
from tunegate.runtimes.requirements import require_installed
from tunegate.sides.export_models import versions
from tunegate.stages.plan_matrix import MatrixLeg, matrix
from tunegate.stages.plan_measuring import measure_matrix
from tunegate.wiring import opened_tools


def run(options: PlanOptions) -> int:
    """Writes changes.json, tasks.json, plan.json, and for the CI's fan-out matrix.json (tuning)
    and measure-matrix.json (the gate).

    The shards run side by side, so without `--shards` there is one for each target.
    """
    settings = options.settings
    project = open_project(settings)
    with opened_output(settings.out, "plan") as out:
        review = project.review(settings)
        out.forget(since="plan")
        changes, config = review.changes, review.config
        if any(versions(change) for change in changes.models):
            require_installed(config, "plan")
        shards = options.shards or len(config.targets)
        with opened_tools(settings, project.reviewed(review), out) as tools:
            planned = pipeline.make_plan(
                tools, changes, shards=shards, measure_shards=options.measure_shards
            )
            _write_matrix(out.path / "matrix.json", matrix(planned))
            _write_matrix(out.path / "measure-matrix.json", measure_matrix(planned))
    if settings.as_json:
        write_json(planned)
    else:
        _show(planned)
    return PASS


def _write_matrix(path: Path, legs: dict[str, list[MatrixLeg]]) -> None:
    artifact_io.write_text(path, json.dumps(legs) + "\n")


def _show(planned: TuningPlan) -> None:
    usd = "" if planned.estimate.usd is None else f", {planned.estimate.usd:.2f} USD"
    legs = len(matrix(planned)["include"])
    tasks = len(planned.resolution.tasks)
    write_line(
        f"{plural(tasks, 'task')}, {plural(legs, 'shard')} to tune, "
        f"about {planned.estimate.seconds:.0f} s{usd}"
    )
    for shard in planned.shards:
        trials = sum(task.trials for task in shard.tasks)
        write_line(
            f"  shard {shard.index} on {shard.target}: {plural(len(shard.tasks), 'task')}, "
            f"{plural(trials, 'trial')}"
        )
    for each in planned.measuring:
        write_line(
            f"  measuring shard {each.index} on {each.target}: "
            f"{plural(len(each.models), 'model')}, about {each.predicted_seconds:.0f} s"
        )
    for note in (*planned.changes.notes, *planned.notes):
        write_line(f"  note: {visible(note)}")
