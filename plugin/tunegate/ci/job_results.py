"""The results in a job's output directory, as a CI shows them."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from tunegate import errors
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet, PolicyChange, path_of
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.ci import protocol
from tunegate.redaction import redact, redact_markdown, secrets_of
from tunegate.regular_files import read_regular, where_it_leads
from tunegate.report.accuracy import ERROR_MOVED, error_moves
from tunegate.report.headline import STATUS_WORDS, counts, described_change
from tunegate.review.config_file import line_of
from tunegate.system.output.directory import opened_output
from tunegate.system.output.owned_directory import is_marked_here
from tunegate.system.processes.interpreter import child_environment

_Artifact = TypeVar("_Artifact", bound=msgspec.Struct)
_MATRICES = ("matrix.json", "measure-matrix.json")
_FILES = ("verdict.json", "changes.json", *_MATRICES, "report.md", "report.html")
_EMPTY_MATRIX = '{"include": []}'
_LEVELS: dict[str, protocol.Level] = {
    "fail": "error",
    "error": "error",
    "invalid-env": "error",
    "no-baseline": "error",
    "inconclusive": "warning",
}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The files that the stage has written; the rest is None or empty. `status` is the verdict's,
    or `error` if a run ended without one."""

    out: Path
    status: str
    verdict: Verdict | None
    changes: ChangeSet | None
    matrix: str
    measure_matrix: str
    report: Path | None
    markdown: str

    def outputs(self) -> dict[str, str]:
        """Returns short words and compact JSON: a CI may drop a long output that happens to contain
        a secret's text."""
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

    def annotations(self, repository: Path, config: Path) -> list[protocol.Annotation]:
        """Returns the annotations: loosened rules first, at their line of the configuration; then
        findings that need attention, and errors that grew for nothing, at their model."""
        if self.verdict is None:
            return []
        level: protocol.Level = "error" if self.verdict.policy_fails else "warning"
        policy = [
            _policy_annotation(change, level, repository, config)
            for change in self.verdict.policy_changes
            if change.weakens
        ]
        needy = [finding for finding in self.verdict.findings if finding.status in _LEVELS]
        moved = [
            _moved_annotation(finding, move, repository)
            for finding in self.verdict.findings
            for move in error_moves(finding, str)
        ]
        annotations = [*policy, *(_annotation(each, repository) for each in needy), *moved]
        return [
            msgspec.structs.replace(each, title=_masked(each.title), text=_masked(each.text))
            for each in annotations
        ]


Stamps = Mapping[str, tuple[int, int]]
"""Stamps of files by name: a rewritten file gets another one."""


def stamps(out: Path) -> Stamps:
    by_name = {}
    for name in _FILES:
        with suppress(OSError):
            status = (out / name).lstat()
            by_name[name] = (status.st_ino, status.st_mtime_ns)
    return by_name


def read_results(out: Path, before: Stamps, exit_code: int) -> Results:
    """Returns the results written since `before`. A verdict with another exit code did not end this
    run."""
    now = stamps(out)
    new_files = {name for name in now if before.get(name) != now[name]}
    verdict = _read_if_valid(out / "verdict.json", Verdict) if "verdict.json" in new_files else None
    if verdict is not None and verdict.exit_code != exit_code:
        verdict = None
    matrix, measure_matrix = (
        (_text(out / name).strip() if name in new_files else "") or _EMPTY_MATRIX
        for name in _MATRICES
    )
    return Results(
        out=out,
        status=verdict.status if verdict else "error" if exit_code != errors.PASS else "",
        verdict=verdict,
        changes=_read_if_valid(out / "changes.json", ChangeSet)
        if "changes.json" in new_files
        else None,
        matrix=matrix,
        measure_matrix=measure_matrix,
        report=out / "report.html" if verdict and "report.html" in new_files else None,
        markdown=redact_markdown(_text(out / "report.md"), secrets_of(os.environ))
        if verdict and "report.md" in new_files
        else "",
    )


def _masked(text: str) -> str:
    return redact(text, secrets_of(os.environ))


def _any(matrix: str) -> str:
    return "true" if json.loads(matrix)["include"] else "false"


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode()
    except OSError:
        return ""


def _policy_annotation(
    change: PolicyChange, level: protocol.Level, repository: Path, config: Path
) -> protocol.Annotation:
    is_of_file = change.key.endswith((".yaml", ".yml"))
    file = repository / change.key if is_of_file else config
    place = place_of(errors.ConfigKey(str(file), "" if is_of_file else change.key), Path())
    name, line = place or ("", 0)
    return protocol.Annotation(
        level=level,
        title="tunegate: policy-change",
        text=described_change(change),
        file=name,
        line=line,
    )


def _annotation(finding: Finding, repository: Path) -> protocol.Annotation:
    """Returns a finding's annotation at the first line of the model, whose lines nobody reads."""
    return protocol.Annotation(
        level=_LEVELS[finding.status],
        title=f"tunegate: {finding.model} on {finding.target}",
        text=f"{finding.status}: {finding.reason}",
        file=_file(finding, repository),
        line=1,
    )


def _moved_annotation(finding: Finding, message: str, repository: Path) -> protocol.Annotation:
    return protocol.Annotation(
        level="warning",
        title=f"tunegate: {ERROR_MOVED}",
        text=message,
        file=_file(finding, repository),
        line=1,
    )


def _file(finding: Finding, repository: Path) -> str:
    file = repository / path_of(finding.model)
    return "" if file.is_absolute() else file.as_posix()


def _read_if_valid(path: Path, kind: type[_Artifact]) -> _Artifact | None:
    try:
        return artifact_io.read(path, kind)
    except errors.ArtifactError:
        return None


# Reports to a CI, with a directory for its files if there is one of ours.


def report_to_host(host: protocol.CiHost, report: protocol.JobReport, out: Path | None) -> None:
    """Reports to the host. Its files go to the directory of the results, if our command made it and
    no other run is in it: the job may have failed because the directory is somebody else's. None
    for no files."""
    with ExitStack() as stack:
        directory = _open_directory(stack, out)
        try:
            command = host.tell(msgspec.structs.replace(report, directory=directory))
            problem = run_agent(command, os.environ) if command else ""
            if problem:
                sys.stderr.write(f"tunegate: the report is not shown beside the job: {problem}\n")
        except errors.OutputError as error:
            sys.stderr.write(f"tunegate: {error}\n")
        except Exception as error:  # noqa: BLE001 -- whatever a host of others does
            reason = _masked(f"{type(error).__name__}: {error}")
            sys.stderr.write(f"tunegate: the CI was not told ({reason})\n")


def _open_directory(stack: ExitStack, out: Path | None) -> Path | None:
    if out is None or not is_marked_here(out):
        return None
    try:
        return stack.enter_context(opened_output(out, "ci")).path
    except (errors.OutputError, errors.OutputInUseError):
        return None


# The progress of a judging job, for a CI that shows it beside the commit. Pure.


def conclude(
    start: protocol.JobProgress, exit_code: int, verdict: Verdict | None
) -> protocol.JobProgress:
    """Returns the end of what has begun, also for a run without a verdict."""
    return msgspec.structs.replace(
        start, outcome=_outcome(exit_code, verdict), title=_title(exit_code, verdict)
    )


def _outcome(exit_code: int, verdict: Verdict | None) -> protocol.Outcome:
    if exit_code == errors.CANCELLED:
        return "cancelled"
    if exit_code in {errors.INCONCLUSIVE, errors.NO_BASELINE} or _fails_for_rules_alone(verdict):
        return "waits"
    if exit_code != errors.PASS or verdict is None:
        return "failed"
    return "passed" if verdict.findings or verdict.policy_changes else "nothing to check"


def _title(exit_code: int, verdict: Verdict | None) -> str:
    if verdict is None:
        return f"No verdict (exit code {exit_code})"
    return f"{STATUS_WORDS[verdict.status]}: {counts(verdict)}"


def _fails_for_rules_alone(verdict: Verdict | None) -> bool:
    if verdict is None or not verdict.policy_fails:
        return False
    return not any(finding.status in {"fail", "error"} for finding in verdict.findings)


# The problem that ended a run without a verdict, as an annotation and a page. Pure. The text may
# quote a file of the pull request, and must show no secret.

_MEANINGS = {
    2: "what was asked for cannot be used",
    3: "inconclusive",
    4: "this machine, or what it depends on, cannot do it",
    5: "there is nothing to compare with",
    70: "a bug of tunegate",
    130: "cancelled",
}


class JobProblem(msgspec.Struct, frozen=True):
    """A problem in lines, its exit code, and the place that the first line is about, if any."""

    lines: tuple[str, ...]
    exit_code: int
    place: ConfigPlace | None = None

    def annotation(self) -> protocol.Annotation:
        file, line = self.place or ("", 0)
        text = "\n".join(self.lines)
        return protocol.Annotation(level="error", title="tunegate", text=text, file=file, line=line)

    def markdown(self) -> str:
        """Returns the page in Markdown, in which quoted text stays text."""
        meaning = _MEANINGS.get(self.exit_code, "no verdict")
        text = "\n".join(html.escape(line).replace("\n", " ") for line in self.lines)
        return (
            "**tunegate: no verdict** (exit code "
            f"{self.exit_code}: {meaning}){self._where()}\n\n<pre>{text}</pre>\n"
        )

    def _where(self) -> str:
        return (
            f" in <code>{html.escape(self.place.file)}:{self.place.line}</code>"
            if self.place
            else ""
        )


def job_problem(
    lines: Sequence[str],
    exit_code: int,
    environment: Mapping[str, str],
    place: ConfigPlace | None = None,
) -> JobProblem:
    """Returns the problem without the values of variables that look like secrets, and without
    credentials in addresses. Bytes of a file's name that are no UTF-8 are shown as codes, which
    every file of a CI can hold."""
    secrets = secrets_of(environment)
    texts = (line.encode(errors="backslashreplace").decode() for line in lines)
    return JobProblem(tuple(redact(text, secrets) for text in texts), exit_code, place)


# The configuration line that an error is about, for an annotation beside it.


class ConfigPlace(NamedTuple):
    file: str
    line: int


def place_of(about: errors.ConfigKey | None, workspace: Path) -> ConfigPlace | None:
    """Returns the file and line to show it at, None if it is about no file of the workspace."""
    if about is None:
        return None
    path = where_it_leads(workspace / about.file)
    try:
        name = path.relative_to(where_it_leads(workspace))
        line = about.line or line_of(path.read_text("utf-8"), about.key)
    except (ValueError, OSError):
        return None
    return ConfigPlace(name.as_posix(), line)


# Runs a CI's agent as a child process, which gets a host's messages and nothing else: no user
# directory, and only the job variables that the command names.

_LIMIT_SECONDS = 60.0
_NOWHERE = "/"


def run_agent(command: protocol.AgentCommand, environment: Mapping[str, str]) -> str:
    """Runs the agent. Returns why it failed, without its output; '' if it did not."""
    program = _program(command, environment.get("PATH", ""))
    if program is None:
        return f"{command.program} was not found"
    variables = {name: environment[name] for name in command.variables if name in environment}
    try:
        completed = subprocess.run(
            [program, *command.arguments],
            input=command.text.encode(errors="replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment(variables),
            cwd=_NOWHERE,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{command.program} did not end in {_LIMIT_SECONDS:.0f} s"
    except OSError as error:
        return f"{command.program} cannot be run ({error.strerror})"
    return f"{command.program} exited with {completed.returncode}" if completed.returncode else ""


def _program(command: protocol.AgentCommand, searched: str) -> str | None:
    places = [command.directory, *searched.split(os.pathsep)]
    absolute = [place for place in places if Path(place).is_absolute()]
    return shutil.which(command.program, path=os.pathsep.join(absolute)) if absolute else None
