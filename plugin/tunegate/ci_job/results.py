"""What a job left in its output directory, as a CI is told of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.ci_hosts.protocol import Annotation, Level
from tunegate.errors import PASS, ArtifactError
from tunegate.regular_files import read_regular
from tunegate.render.policy import described_change

_Artifact = TypeVar("_Artifact", bound=msgspec.Struct)
_FILES = ("verdict.json", "changes.json", "matrix.json", "report.md", "report.html")
_EMPTY_MATRIX = '{"include": []}'
_LEVELS: dict[str, Level] = {
    "fail": "error",
    "error": "error",
    "invalid-env": "error",
    "no-baseline": "error",
    "inconclusive": "warning",
}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Whatever the stage has written; the rest is None or empty. `status` is that of the verdict,
    or `error` where a run ended without one."""

    out: Path
    status: str
    verdict: Verdict | None
    changes: ChangeSet | None
    matrix: str
    report: Path | None
    markdown: str

    def outputs(self) -> dict[str, str]:
        """Short words and compact JSON: a CI may drop a long output
        that contains a secret's text."""
        changed = [model.path for model in self.changes.models] if self.changes else []
        return {
            "verdict": self.status,
            "report": str(self.report) if self.report else "",
            "matrix": self.matrix,
            "any": "true" if json.loads(self.matrix)["include"] else "false",
            "changed": json.dumps(changed, ensure_ascii=False),
        }

    def annotations(self) -> list[Annotation]:
        """The loosened rules first, then the findings that need somebody."""
        if self.verdict is None:
            return []
        level: Level = "error" if self.verdict.policy_fails else "warning"
        policy = [
            Annotation(level=level, title="tunegate: policy-change", text=described_change(change))
            for change in self.verdict.policy_changes
            if change.weakens
        ]
        return [*policy, *(_annotation(f) for f in self.verdict.findings if f.status in _LEVELS)]


Stamps = Mapping[str, tuple[int, int]]
"""Which files there are, and which content of each: a file that is written again is another one."""


def stamps(out: Path) -> Stamps:
    found = {}
    for name in _FILES:
        with suppress(OSError):
            status = (out / name).lstat()
            found[name] = (status.st_ino, status.st_mtime_ns)
    return found


def read_results(out: Path, before: Stamps, exit_code: int) -> Results:
    """Only of what was written since. A verdict with another exit code did not end this run."""
    now = stamps(out)
    written = {name for name in now if before.get(name) != now[name]}
    verdict = _read(out / "verdict.json", Verdict) if "verdict.json" in written else None
    if verdict is not None and verdict.exit_code != exit_code:
        verdict = None
    return Results(
        out=out,
        status=verdict.status if verdict else "error" if exit_code != PASS else "",
        verdict=verdict,
        changes=_read(out / "changes.json", ChangeSet) if "changes.json" in written else None,
        matrix=(_text(out / "matrix.json").strip() if "matrix.json" in written else "")
        or _EMPTY_MATRIX,
        report=out / "report.html" if verdict and "report.html" in written else None,
        markdown=_text(out / "report.md") if verdict and "report.md" in written else "",
    )


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except OSError:
        return ""


def _annotation(finding: Finding) -> Annotation:
    return Annotation(
        level=_LEVELS[finding.status],
        title=f"tunegate: {finding.model} on {finding.target}",
        text=f"{finding.status}: {finding.reason}",
    )


def _read(path: Path, kind: type[_Artifact]) -> _Artifact | None:
    try:
        return artifact_io.read(path, kind)
    except ArtifactError:
        return None
