"""`tunegate detect`: which models a change touches."""

from __future__ import annotations

import os

from tunegate import artifact_io
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.commands.detect import DetectOptions
from tunegate.commands.pushed_revisions import pushed_revisions
from tunegate.commands.standard_output import write_json, write_line
from tunegate.edges.output.directory import opened_output
from tunegate.errors import PASS
from tunegate.project import Project, open_project
from tunegate.render.escape import visible
from tunegate.render.policy import described_change, uncovered_line
from tunegate.settings import Settings


def run(options: DetectOptions) -> int:
    """Writes changes.json, unless it is the hook of a push."""
    project = open_project(options.settings)
    if options.pushed:
        default = project.repository.default_branch_name()
        settings = pushed_revisions(options.settings, os.environ, default)
        changes = project.review(settings).changes
    else:
        changes = _written(project, options.settings)
    if options.settings.as_json:
        write_json(changes)
    else:
        _show(changes)
    return PASS


def _written(project: Project, settings: Settings) -> ChangeSet:
    with opened_output(settings.out, "detect") as out:
        changes = project.review(settings).changes
        artifact_io.write(out.path / "changes.json", changes)
    return changes


def _show(changes: ChangeSet) -> None:
    revisions = changes.revisions
    base = revisions.base[:12] if revisions.base else "nothing"
    write_line(f"{revisions.head[:12]} against {base} ({visible(revisions.reason)})")
    for policy_change in changes.policy_changes:
        write_line(f"  {described_change(policy_change, visible)}")
    for change in changes.models:
        kind = f"{change.kind}, {change.change}" if change.change else change.kind
        write_line(f"  {visible(change.path)}: {kind}: {visible(change.reason)}")
    write_line(f"  {len(changes.unchanged)} unchanged")
    uncovered = uncovered_line(changes.uncovered, visible)
    if uncovered:
        write_line(f"  {uncovered}")
    for note in changes.notes:
        write_line(f"  note: {visible(note)}")
