"""A verdict as an in-toto statement: what was compared, by which rules, and the result.

The layout is in-toto's Statement v1
(https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md). The subjects are the files
of both sides and the artifacts that ship; the predicate is ours. Pure.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping

import msgspec

from tunegate.artifacts.changes import ChangeSet, Side
from tunegate.artifacts.inputs import GIVEN, DrawnInput
from tunegate.artifacts.measurements import Interval, MeasurementRun
from tunegate.artifacts.verdicts import Finding, Status, Verdict
from tunegate.errors import ArtifactError

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://github.com/tunegate/tunegate/latency-verdict/v1"
"""The name of the layout of `LatencyVerdict`. A change that old readers would misread gets a new
name."""


class Subject(msgspec.Struct, frozen=True):
    """A file: `head:models/m.onnx` is the judged model, `base:…` what it was compared with,
    `artifact:models/m.onnx:cpu` the directory that ships on a target, `configuration` the judging
    rules. `digest` is by algorithm, in hexadecimal digits."""

    name: str
    digest: Mapping[str, str]


class JudgedInput(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The shape of an input as it was measured. `given` are the values that a configuration gave
    for it, in words, '' for those that were drawn by the model itself."""

    name: str
    shape: tuple[int, ...]
    given: str = ""


class JudgedCell(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result for one model on one target, measured on a `device`. `base_path` is where its base
    was, '' without one. A pass excludes a slowdown over the gate's margin, and what `excludes` says
    in words; `interval_percent` is the change of the median latency. `accuracy` has the limits
    of the accuracy budget, none where everything computed in float32."""

    model: str
    base_path: str
    target: str
    status: Status
    reason: str
    base_ms: float | None
    head_ms: float | None
    interval_percent: Interval | None
    launches: int
    excludes: str = ""
    device: str = ""
    inputs: tuple[JudgedInput, ...] = ()
    accuracy: Mapping[str, float] = {}


class LatencyVerdict(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The predicate. `policy_digest` is of the judging rules, waivers included,
    `measurements_digest` of `measurements.json`. `policy_fails`: the change loosens its own gate,
    and fails for that. `finished_at` is in UTC. `gate` and `targets` are those of the judging
    configuration, with all keys."""

    status: Status
    findings: tuple[JudgedCell, ...]
    pairing: str
    policy_digest: str
    policy_fails: bool
    measurements_digest: str
    base: str
    head: str
    seed: str
    tool_version: str
    environment: Mapping[str, str]
    device: Mapping[str, object]
    finished_at: str
    gate: Mapping[str, object] = {}
    targets: Mapping[str, Mapping[str, object]] = {}


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """The signed content of evidence."""

    type: str = msgspec.field(name="_type")
    subject: tuple[Subject, ...]
    predicate_type: str = msgspec.field(name="predicateType")
    predicate: LatencyVerdict


_PAIRING = "base and head in turn, as pairs of fresh processes"


def make_statement(
    verdict: Verdict,
    changes: ChangeSet,
    run: MeasurementRun | None,
    files: Mapping[tuple[Side, str], str],
    *,
    version: str,
    now: datetime.datetime,
) -> Statement:
    """Returns the statement on a verdict about these changes. `files` are the SHA-256 digests of
    each side's files, by path; `now` is the time at which the verdict was written."""
    bases = {each.path: each.base.path for each in changes.models if each.base is not None}
    return Statement(
        type=STATEMENT_TYPE,
        subject=(
            *_file_subjects(files),
            *_artifact_subjects(run),
            *_configuration_subject(verdict.origin.rules),
        ),
        predicate_type=PREDICATE_TYPE,
        predicate=LatencyVerdict(
            status=verdict.status,
            findings=tuple(
                _judged_cell(each, bases.get(each.model, ""), _device(run, each.target))
                for each in verdict.findings
            ),
            pairing=_PAIRING,
            policy_digest=verdict.origin.rules,
            policy_fails=verdict.policy_fails,
            measurements_digest=verdict.origin.measurements,
            base=verdict.revisions.base or "",
            head=verdict.revisions.head,
            seed=verdict.seed,
            tool_version=version,
            environment=dict(run.environment) if run else {},
            device=msgspec.to_builtins(run.device) if run else {},
            finished_at=now.astimezone(datetime.UTC).isoformat(timespec="seconds"),
            gate=verdict.origin.gate,
            targets=verdict.origin.targets,
        ),
    )


def checksums(statement: Statement) -> str:
    """Returns the subjects as `sha256sum` lists them, for `actions/attest`. Raises ArtifactError
    for a name of several lines, which could say that another file was judged."""
    for each in statement.subject:
        if len(each.name.splitlines()) > 1:
            raise ArtifactError(f"{each.name!r}: a name of several lines is not signed. Rename it.")
    return "".join(f"{each.digest['sha256']}  {each.name}\n" for each in statement.subject)


def subject_name(side: Side, path: str) -> str:
    """Returns the subject name of a side's file."""
    return f"{side}:{path}"


def artifact_name(model: str, target: str) -> str:
    """Returns the subject name of what ships for a model on a target."""
    return f"artifact:{model}:{target}"


def _file_subjects(files: Mapping[tuple[Side, str], str]) -> Iterator[Subject]:
    for (side, path), sha256 in sorted(files.items()):
        yield Subject(subject_name(side, path), {"sha256": sha256})


def _artifact_subjects(run: MeasurementRun | None) -> Iterator[Subject]:
    for built in run.builds if run else ():
        if built.head is not None and built.head.digest:
            name = artifact_name(built.cell.model, built.cell.target)
            yield Subject(name, {"sha256": built.head.digest})


def _configuration_subject(rules: str) -> Iterator[Subject]:
    if rules:
        yield Subject("configuration", {"sha256": rules})


def _device(run: MeasurementRun | None, target: str) -> str:
    """Returns the name of the device that measured a target, all names if several did."""
    if run is None:
        return ""
    names = {each.device.name for each in run.shards if each.target == target}
    return ", ".join(sorted(names)) or run.device.name


def _judged_cell(finding: Finding, base_path: str, device: str) -> JudgedCell:
    return JudgedCell(
        model=finding.model,
        base_path=base_path,
        target=finding.target,
        status=finding.status,
        reason=finding.reason,
        base_ms=finding.base_ms,
        head_ms=finding.head_ms,
        interval_percent=finding.change_percent,
        launches=finding.launches,
        excludes=finding.remarks if finding.status == "pass" else "",
        device=device,
        inputs=tuple(map(_judged_input, finding.inputs)),
        accuracy={each.what: each.limit for each in finding.accuracy.limits}
        if finding.accuracy is not None
        else {},
    )


def _judged_input(drawn: DrawnInput) -> JudgedInput:
    why = drawn.rule.why if drawn.rule is not None else ""
    given = why.removeprefix(GIVEN) if why.startswith(GIVEN) else ""
    return JudgedInput(name=drawn.name, shape=drawn.shape, given=given)
