"""Changes run under the packages of lock files."""

from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import new_repository
from tests.support.small_onnx import conv_model

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet, ModelChange, Revisions
from tunegate.cli.handlers.compare_environments import NoEnvironment
from tunegate.measure.bench_messages import Sides
from tunegate.project import open_project
from tunegate.settings import Settings
from tunegate.system.output.directory import opened_output
from tunegate.wiring import model_source, opened_upgrade_tools
from tunegate_upgrades.upgraded_sides import UpgradedSides, upgraded_changes

CONFIG = b"models: [{path: m.onnx}]\nwatch: {files: [r.txt]}\n"


def test_only_upgraded_models_are_run_under_other_packages() -> None:
    changes = ChangeSet(
        revisions=Revisions(base="b", head="h"),
        models=tuple(
            ModelChange(path=kind, kind=kind, change=None, base=None, head=None, targets=())
            for kind in ("added", "upgraded", "deleted")
        ),
    )
    assert [each.path for each in upgraded_changes(changes)] == ["upgraded"]


def test_a_package_of_the_head_that_cannot_be_had_is_an_error_of_each_model(
    tmp_path: Path,
) -> None:
    checkout = new_repository(tmp_path / "r")
    model = conv_model().SerializeToString()
    base = checkout.commit(
        {"m.onnx": model, "tunegate.yaml": CONFIG, "r.txt": b"onnxruntime==1.0\n"}
    )
    checkout.commit({"r.txt": b"onnxruntime==2.0\n"})
    settings = Settings(repository=checkout.path, base=base, out=tmp_path / "out")
    project = open_project(settings)
    review = project.review(settings)
    (change,) = review.changes.models
    reason = NoEnvironment(reason="r.txt cannot be installed: no onnxruntime==2.0", broken=True)
    with opened_output(settings.out, "run") as out:
        sides = UpgradedSides(
            model_source(project.review_subject(review), out.workdir),
            out.path,
            {change.path: Sides(None, reason)},
            {change.path: "onnxruntime"},
        )
        with opened_upgrade_tools(settings, review, out, sides.pythons(review.changes)) as tools:
            report = pipeline.gate_upgrades(tools, review.changes, sides)
    (finding,) = report.verdict.findings
    assert finding.model == "m.onnx (onnxruntime of r.txt)"
    assert (finding.status, finding.reason) == ("error", reason.reason)
    assert report.verdict.exit_code == 2
