"""A step that begins with the model and the target that it is about."""

from __future__ import annotations

from tunegate.artifacts.verdicts import Finding, Named, NextStep


def on_cell(finding: Finding, said: str, *, before: str = "") -> NextStep:
    """A sentence on the cell of a finding; `before` stands in front of its name."""
    where = cell_names(finding)
    return NextStep((before, *where, said) if before else (*where, said))


def cell_names(finding: Finding) -> tuple[str | Named, ...]:
    """Returns the name of the cell, inside a sentence."""
    return Named(finding.model), " on ", Named(finding.target)
