"""The results in a job's output directory, as a CI shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.changes import ChangeSet, PolicyChange
from tunegate.artifacts.model_names import path_of
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.ci_hosts.protocol import Annotation, Level
from tunegate.ci_job.config_place import place_of
from tunegate.errors import PASS, ArtifactError, ConfigKey
from tunegate.regular_files import read_regular
from tunegate.render.candidates.error_moves import ERROR_MOVED, error_moves
from tunegate.render.policy import described_change

_Artifact = TypeVar("_Artifact", bound=msgspec.Struct)
_MATRICES = ("matrix.json", "measure-matrix.json")
_FILES = ("verdict.json", "changes.json", *_MATRICES, "report.md", "report.html")
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
    measure_matrix: str
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
            "any": _any(self.matrix),
            "measure-matrix": self.measure_matrix,
            "measure-any": _any(self.measure_matrix),
            "changed": json.dumps(changed, ensure_ascii=False),
        }

    def annotations(self, repository: Path, config: Path) -> list[Annotation]:
        """Returns the annotations: the loosened rules first, at their line of the configuration;
        then the findings that need somebody, and errors that got larger for nothing, at their
        model."""
        if self.verdict is None:
            return []
        level: Level = "error" if self.verdict.policy_fails else "warning"
        policy = [
            _policy_annotation(change, level, repository, config)
            for change in self.verdict.policy_changes
            if change.weakens
        ]
        needy = [finding for finding in self.verdict.findings if finding.status in _LEVELS]
        moved = [
            _moved_annotation(finding, said, repository)
            for finding in self.verdict.findings
            for said in error_moves(finding, str)
        ]
        return [*policy, *(_annotation(finding, repository) for finding in needy), *moved]


Stamps = Mapping[str, tuple[int, int]]
"""Stamps of files by name: a file that is written again gets another one."""


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
    matrix, measure_matrix = (
        (_text(out / name).strip() if name in written else "") or _EMPTY_MATRIX
        for name in _MATRICES
    )
    return Results(
        out=out,
        status=verdict.status if verdict else "error" if exit_code != PASS else "",
        verdict=verdict,
        changes=_read(out / "changes.json", ChangeSet) if "changes.json" in written else None,
        matrix=matrix,
        measure_matrix=measure_matrix,
        report=out / "report.html" if verdict and "report.html" in written else None,
        markdown=_text(out / "report.md") if verdict and "report.md" in written else "",
    )


def _any(matrix: str) -> str:
    return "true" if json.loads(matrix)["include"] else "false"


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except OSError:
        return ""


def _policy_annotation(
    change: PolicyChange, level: Level, repository: Path, config: Path
) -> Annotation:
    is_of_file = change.key.endswith((".yaml", ".yml"))
    file = repository / change.key if is_of_file else config
    place = place_of(ConfigKey(str(file), "" if is_of_file else change.key), Path())
    name, line = place or ("", 0)
    return Annotation(
        level=level,
        title="tunegate: policy-change",
        text=described_change(change),
        file=name,
        line=line,
    )


def _annotation(finding: Finding, repository: Path) -> Annotation:
    """A model has no lines that anybody reads: it stands at the first."""
    return Annotation(
        level=_LEVELS[finding.status],
        title=f"tunegate: {finding.model} on {finding.target}",
        text=f"{finding.status}: {finding.reason}",
        file=_file(finding, repository),
        line=1,
    )


def _moved_annotation(finding: Finding, said: str, repository: Path) -> Annotation:
    return Annotation(
        level="warning",
        title=f"tunegate: {ERROR_MOVED}",
        text=said,
        file=_file(finding, repository),
        line=1,
    )


def _file(finding: Finding, repository: Path) -> str:
    file = repository / path_of(finding.model)
    return "" if file.is_absolute() else file.as_posix()


def _read(path: Path, kind: type[_Artifact]) -> _Artifact | None:
    try:
        return artifact_io.read(path, kind)
    except ArtifactError:
        return None
