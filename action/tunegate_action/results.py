"""What a run left in its output directory, as GitHub wants it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate import wire
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.errors import ArtifactError
from tunegate_action.workflow import MOST_ANNOTATIONS, Level, annotation

Artifact = TypeVar("Artifact", bound=msgspec.Struct)
_EMPTY_MATRIX = '{"include": []}'
_LEVELS: dict[str, Level] = {
    "fail": "error",
    "error": "error",
    "invalid-env": "error",
    "no-baseline": "error",
    "inconclusive": "warning",
}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever the stage has written; the rest is None or empty."""

    out: Path
    verdict: Verdict | None
    changes: ChangeSet | None
    matrix: str
    markdown: str

    def outputs(self) -> dict[str, str]:
        """Short words and compact JSON: GitHub drops a long output that contains a secret's text."""
        report = self.out / "report.html"
        changed = [model.path for model in self.changes.models] if self.changes else []
        return {
            "verdict": self.verdict.status if self.verdict else "",
            "report": str(report) if report.exists() else "",
            "matrix": self.matrix,
            "any": "true" if json.loads(self.matrix)["include"] else "false",
            "changed": json.dumps(changed, ensure_ascii=False),
        }

    def annotations(self) -> list[str]:
        """The findings that need somebody, the first few."""
        if self.verdict is None:
            return []
        shown = [f for f in self.verdict.findings if f.status in _LEVELS]
        return [_annotation(finding) for finding in shown[:MOST_ANNOTATIONS]]


def read_results(out: Path) -> Results:
    matrix, markdown = out / "matrix.json", out / "report.md"
    return Results(
        out=out,
        verdict=_read(out / "verdict.json", Verdict),
        changes=_read(out / "changes.json", ChangeSet),
        matrix=matrix.read_text("utf-8").strip() if matrix.exists() else _EMPTY_MATRIX,
        markdown=markdown.read_text("utf-8") if markdown.exists() else "",
    )


def _annotation(finding: Finding) -> str:
    title = f"tunegate: {finding.model} on {finding.target}"
    return annotation(_LEVELS[finding.status], title, f"{finding.status}: {finding.reason}")


def _read(path: Path, kind: type[Artifact]) -> Artifact | None:
    try:
        return wire.read(path, kind)
    except ArtifactError:
        return None
