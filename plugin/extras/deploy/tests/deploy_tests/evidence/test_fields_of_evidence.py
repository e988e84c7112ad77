"""Each field of an evidence is held against the policy or the gate, or the page says that it only
informs."""

from __future__ import annotations

import datetime
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from tunegate.artifacts.changes import path_of
from tunegate.config import GateConfig, TargetConfig
from tunegate_cache.format.signing import public_text
from tunegate_deploy.evidence.envelope import EvidenceError, sign, verify_signature
from tunegate_deploy.evidence.own_gate import OwnGate, require_as_strict
from tunegate_deploy.evidence.policy import EvidencePolicy, check_statement
from tunegate_deploy.evidence.statement import (
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    JudgedCell,
    JudgedInput,
    LatencyVerdict,
    Statement,
    Subject,
)

PAGE = (Path(__file__).parents[3] / "README.md").read_text()
KEY = Ed25519PrivateKey.from_private_bytes(b"2" * 32)
NOW = datetime.datetime(2026, 11, 27, 12, tzinfo=datetime.UTC)
HEAD, BASE = {"m.onnx": "a" * 64}, {"m.onnx": "b" * 64}
TARGET = TargetConfig(name="cpu", threads=4)
POLICY = EvidencePolicy(
    keys=(public_text(KEY.public_key()),),
    gate={"margin-percent": 3},
    policy_digests=("c" * 64,),
    targets=("cpu",),
    devices=("EPYC",),
    environment={"onnxruntime version": "1.27.0"},
    require_production=True,
)
OWN = OwnGate(gate=GateConfig(), targets=(TARGET,), shapes={"x": (1, 8)})
INPUT = JudgedInput(name="x", shape=(1, 8))
CELL = JudgedCell(
    model="m.onnx",
    base_path="m.onnx",
    target="cpu",
    status="pass",
    reason="within the margin of 3%",
    base_ms=1.0,
    head_ms=1.0,
    interval_percent=None,
    launches=8,
    device="EPYC",
    inputs=(INPUT,),
)
PREDICATE = LatencyVerdict(
    status="pass",
    findings=(CELL,),
    pairing="in turn",
    policy_digest="c" * 64,
    policy_fails=False,
    measurements_digest="d" * 64,
    base="e" * 40,
    head="f" * 40,
    seed="7",
    tool_version="0.1.0",
    environment={"onnxruntime version": "1.27.0"},
    device={"name": "EPYC"},
    finished_at=NOW.isoformat(),
    gate=msgspec.to_builtins(GateConfig()),
    targets={"cpu": msgspec.to_builtins(TARGET)},
)
HEAD_FILE, BASE_FILE = (
    Subject(f"{side}:m.onnx", {"sha256": files["m.onnx"]})
    for side, files in (("head", HEAD), ("base", BASE))
)
STATEMENT = Statement(
    type=STATEMENT_TYPE,
    subject=(HEAD_FILE, BASE_FILE),
    predicate_type=PREDICATE_TYPE,
    predicate=PREDICATE,
)


def check(found: Statement) -> None:
    read = verify_signature(sign(found, KEY), [KEY.public_key()])
    cells = check_statement(read, POLICY, head=HEAD, base=BASE, now=NOW)
    require_as_strict(read.predicate, cells, OWN)


def head_file(**changed: object) -> Statement:
    return replace(STATEMENT, subject=(replace(HEAD_FILE, **changed), BASE_FILE))


def predicate(**changed: object) -> Statement:
    return replace(STATEMENT, predicate=replace(PREDICATE, **changed))


def finding(**changed: object) -> Statement:
    return predicate(findings=(replace(CELL, **changed),))


def sized(**changed: object) -> Statement:
    return finding(inputs=(replace(INPUT, **changed),))


LAXER = msgspec.to_builtins(GateConfig(margin_percent=4.0))
OTHER_TARGET = msgspec.to_builtins(replace(TARGET, threads=8))
REFUSED: Mapping[str, tuple[Callable[[], Statement], str]] = {
    "_type": (lambda: replace(STATEMENT, type="https://in-toto.io/Statement/v9"), "not a latency"),
    "subject.name": (lambda: head_file(name="head:other.onnx"), "no finding"),
    "subject.digest": (lambda: head_file(digest={"sha256": "0" * 64}), "about another model"),
    "predicateType": (
        lambda: replace(STATEMENT, predicate_type="https://slsa.dev"),
        "not a latency",
    ),
    "predicate.findings.model": (lambda: finding(model="other.onnx"), "no finding"),
    "predicate.findings.basePath": (lambda: finding(base_path="old.onnx"), "in production"),
    "predicate.findings.target": (lambda: finding(target="gpu"), "not judged on cpu"),
    "predicate.findings.status": (lambda: finding(status="fail"), "is fail"),
    "predicate.findings.device": (lambda: finding(device="Xeon"), "was measured on Xeon"),
    "predicate.findings.inputs.name": (lambda: sized(name="y"), "with x as unknown"),
    "predicate.findings.inputs.shape": (lambda: sized(shape=(1, 4)), r"x as \[1, 4\]"),
    "predicate.findings.inputs.given": (lambda: sized(given="zeros"), "given values"),
    "predicate.findings.accuracy": (lambda: finding(accuracy={"max-error": 1.0}), "budget"),
    "predicate.policyDigest": (lambda: predicate(policy_digest="0" * 64), "other rules"),
    "predicate.policyFails": (lambda: predicate(policy_fails=True), "loosens the rules"),
    "predicate.environment": (
        lambda: predicate(environment={"onnxruntime version": "1.26.0"}),
        "onnxruntime version 1.26.0, and the policy asks for 1.27.0",
    ),
    "predicate.finishedAt": (lambda: predicate(finished_at="2026-01-01T00:00:00Z"), "days ago"),
    "predicate.gate": (lambda: predicate(gate=LAXER), "gate.margin-percent was 4"),
    "predicate.targets": (lambda: predicate(targets={"cpu": OTHER_TARGET}), "threads was 8"),
}
"""Each field that decides, altered, and what is said then."""

INFORMS = {
    "predicate.status": "fail",  # of all models together: another one's slowdown is not this one's
    "predicate.pairing": "another",
    "predicate.measurementsDigest": "0" * 64,
    "predicate.base": "0" * 40,
    "predicate.head": "0" * 40,
    "predicate.seed": "8",
    "predicate.toolVersion": "0.2.0",
    "predicate.device": {"name": "EPYC", "driver": "550"},
    "predicate.findings.reason": "another",
    "predicate.findings.baseMs": 2.0,
    "predicate.findings.headMs": 2.0,
    "predicate.findings.intervalPercent": None,
    "predicate.findings.launches": 12,
    "predicate.findings.excludes": "another",
}
"""Fields that decide nothing, each with another value."""


def fields(of: type[msgspec.Struct], place: str = "") -> Iterator[str]:
    """Yields the place of each field that holds no further fields of ours."""
    hints = typing.get_type_hints(of)
    for each in msgspec.structs.fields(of):
        here = f"{place}{each.encode_name}"
        kinds = [hints[each.name], *typing.get_args(hints[each.name])]
        below = [x for x in kinds if x in {LatencyVerdict, JudgedCell, JudgedInput, Subject}]
        if below:
            yield from fields(below[0], f"{here}.")
        else:
            yield here


def test_each_field_decides_or_is_said_to_inform() -> None:
    check(STATEMENT)
    assert sorted([*REFUSED, *INFORMS]) == sorted(fields(Statement))
    line = next(line for line in PAGE.splitlines() if line.startswith("These only inform:"))
    assert [each for each in INFORMS if f"`{each.rpartition('.')[2]}`" not in line] == []


@pytest.mark.parametrize("field", REFUSED)
def test_a_field_that_decides_is_held_against_the_policy_or_the_gate(field: str) -> None:
    altered, told = REFUSED[field]
    with pytest.raises(EvidenceError, match=told):
        check(altered())


@pytest.mark.parametrize("field", INFORMS)
def test_a_field_that_only_informs_changes_nothing(field: str) -> None:
    *above, name = field.split(".")
    owner = CELL if "findings" in above else PREDICATE
    (attribute,) = [x.name for x in msgspec.structs.fields(owner) if x.encode_name == name]
    alter = finding if owner is CELL else predicate
    check(alter(**{attribute: INFORMS[field]}))


def test_a_profile_of_the_model_counts_as_the_model() -> None:
    profile = replace(CELL, model="m.onnx@long")
    assert path_of(profile.model) == "m.onnx"
    with pytest.raises(EvidenceError, match=r"m\.onnx@long on cpu is fail"):
        check(predicate(findings=(CELL, replace(profile, status="fail"))))
