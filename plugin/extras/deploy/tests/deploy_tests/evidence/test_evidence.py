"""Evidence: made of a verdict, and refused for whatever it does not show."""

from __future__ import annotations

import base64
import datetime
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from tests.support import report_parts as parts
from tests.support.reports import make_report

from tunegate.artifacts.changes import Side
from tunegate.config import GateConfig
from tunegate.errors import ArtifactError, ConfigError
from tunegate_cache.format.signing import public_text
from tunegate_deploy.evidence.cyclonedx import bill_of_materials
from tunegate_deploy.evidence.envelope import (
    MAX_SIGNATURES,
    PAYLOAD_TYPE,
    EvidenceError,
    encode_for_signing,
    read_private_key,
    read_public_key,
    sign,
    verify_signature,
)
from tunegate_deploy.evidence.policy import EvidencePolicy, check_statement, read_policy
from tunegate_deploy.evidence.statement import (
    JudgedCell,
    Statement,
    Subject,
    checksums,
    make_statement,
)
from tunegate_deploy.evidence.verify import shown_by

NOW = datetime.datetime(2026, 11, 27, 12, tzinfo=datetime.UTC)
AGE = datetime.timedelta(days=20)
KEY, OTHER = Ed25519PrivateKey.from_private_bytes(b"1" * 32), Ed25519PrivateKey.generate()
REPORT = make_report("measured")
GATE = msgspec.to_builtins(GateConfig(tail_margin_percent=20.0))
MODEL = REPORT.verdict.findings[0].model
CHANGES = REPORT.changes
(CHANGE,) = [each for each in CHANGES.models if each.path == MODEL]
assert CHANGE.base is not None
BASE = CHANGE.base.path
FILES: Mapping[tuple[Side, str], str] = {
    ("head", MODEL): "a" * 64,
    ("head", f"{MODEL}.data"): "b" * 64,
    ("base", BASE): "c" * 64,
    ("head", "models/other.onnx"): "d" * 64,
    ("base", "models/other.onnx"): "e" * 64,
}
NAME = MODEL.rpartition("/")[2]
HEAD = {NAME: "a" * 64, f"{NAME}.data": "b" * 64}
PRODUCTION = {"now.onnx": "c" * 64}
POLICY = EvidencePolicy(keys=(public_text(KEY.public_key()),))


def statement(at: datetime.datetime = NOW) -> Statement:
    origin = msgspec.structs.replace(REPORT.verdict.origin, gate=GATE)
    verdict = msgspec.structs.replace(REPORT.verdict, origin=origin)
    return make_statement(verdict, CHANGES, REPORT.run, FILES, version="0.1.0", now=at)


def check(
    found: Statement,
    policy: EvidencePolicy = POLICY,
    head: Mapping[str, str] = HEAD,
    base: Mapping[str, str] | None = PRODUCTION,
) -> tuple[JudgedCell, ...]:
    return check_statement(found, policy, head=head, base=base, now=NOW)


def test_what_was_signed_is_read_again_and_shows_what_it_says() -> None:
    found = verify_signature(sign(statement(), KEY), [OTHER.public_key(), KEY.public_key()])
    assert found == statement()
    assert [each.status for each in check(found)] == ["pass"] * len(check(found))
    rules = found.predicate.policy_digest
    assert Subject("configuration", {"sha256": rules}) in found.subject


def test_base64_of_addresses_and_signatures_of_others_are_those_of_dsse() -> None:
    envelope = json.loads(sign(statement(), KEY))
    for part in (envelope, *envelope["signatures"]):
        part |= {
            k: v.replace("+", "-").replace("/", "_")
            for k, v in part.items()
            if k != "payloadType" and isinstance(v, str)
        }
    envelope["signatures"].insert(0, {"sig": "of another kind"})
    assert verify_signature(json.dumps(envelope).encode(), [KEY.public_key()]) == statement()


def test_an_upgrade_beside_a_rename_leaves_the_model_compared_with_production() -> None:
    """It is measured with the head's model on both sides."""
    found = statement()
    upgrade = f"{MODEL} (onnxruntime of uv.lock)"
    cells = found.predicate.findings
    new = msgspec.structs.replace(cells[0], model=upgrade, base_path="renamed.onnx")
    predicate = msgspec.structs.replace(found.predicate, findings=(*cells, new))
    assert new in check(msgspec.structs.replace(found, predicate=predicate))


def test_the_envelope_is_that_of_dsse() -> None:
    """The example of the protocol's page."""
    assert encode_for_signing("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_name_of_several_lines_adds_no_subject_to_the_list() -> None:
    line = f"{'d' * 64}  head:models/other.onnx"
    assert line in checksums(statement()).splitlines()
    twice = statement()
    twice = msgspec.structs.replace(twice, subject=(Subject(f"head:x\n{line}", {"sha256": "0"}),))
    with pytest.raises(ArtifactError, match="several lines"):
        checksums(twice)


def altered(change: Callable[[dict[str, object]], None]) -> bytes:
    """The evidence with another payload, and the signature of the first one."""
    envelope = json.loads(sign(statement(), KEY))
    payload = json.loads(base64.b64decode(envelope["payload"]))
    change(payload)
    envelope["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
    return json.dumps(envelope).encode()


def test_content_that_was_altered_is_refused() -> None:
    def make_pass(payload: dict[str, object]) -> None:
        payload["subject"] = []

    with pytest.raises(EvidenceError, match="altered"):
        verify_signature(altered(make_pass), [KEY.public_key()])


@given(st.data())
def test_no_altered_byte_of_an_evidence_is_believed(data: st.DataObject) -> None:
    body = bytearray(sign(statement(), KEY))
    index = data.draw(st.integers(0, len(body) - 1))
    body[index] ^= data.draw(st.integers(1, 255))
    try:
        found = verify_signature(bytes(body), [KEY.public_key()])
    except EvidenceError:
        return
    assert found == statement()  # the byte was a space or the hint which key it is


def test_another_key_is_refused_whatever_it_says_it_is() -> None:
    by_other = json.loads(sign(statement(), OTHER))
    by_other["signatures"][0]["keyid"] = json.loads(sign(statement(), KEY))["signatures"][0][
        "keyid"
    ]
    with pytest.raises(EvidenceError, match="no trusted key"):
        verify_signature(json.dumps(by_other).encode(), [KEY.public_key()])


def games() -> dict[str, dict[str, object]]:
    """An envelope with another one's part in it, or with a part that says something else."""
    own, older = (json.loads(sign(statement(at), KEY)) for at in (NOW, NOW - AGE))
    text = KEY.sign(encode_for_signing("text/plain", base64.b64decode(own["payload"])))
    by_text = [{"keyid": "", "sig": base64.b64encode(text).decode()}]
    long = base64.b64encode(bytes(2_900_000)).decode()
    return {
        "signature of an older one": own | {"signatures": older["signatures"]},
        "payload of an older one": own | {"payload": older["payload"]},
        "signed as text": own | {"signatures": by_text},
        "said to be text": own | {"payloadType": "text/plain"},
        "a type in capitals": own | {"payloadType": PAYLOAD_TYPE.upper()},
        "a type with a parameter": own | {"payloadType": f"{PAYLOAD_TYPE};v=1"},
        "no signature": own | {"signatures": []},
        "a signature of zeros": own | {"signatures": [{"keyid": "k", "sig": "A" * 86 + "=="}]},
        "a long payload, often signed": own | {"payload": long, "signatures": by_text * 16},
    }


@pytest.mark.parametrize("game", games())
def test_parts_of_two_envelopes_make_no_third(game: str) -> None:
    with pytest.raises(EvidenceError, match="no trusted key"):
        verify_signature(json.dumps(games()[game]).encode(), [KEY.public_key()])


def test_a_key_that_is_given_twice_counts_as_what_was_signed() -> None:
    older = json.loads(sign(statement(NOW - AGE), KEY))
    twice = f'{{"payload": "{older["payload"]}", ' + sign(statement(), KEY).decode().strip()[1:]
    assert verify_signature(twice.encode(), [KEY.public_key()]) == statement()


def test_a_file_that_no_evidence_fills_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "evidence.json"
    file.touch()
    os.truncate(file, 2**40)
    with pytest.raises(EvidenceError, match="larger than 4 MiB"):
        shown_by(file, POLICY, tmp_path / "m.onnx", None)


def test_a_file_that_is_named_twice_is_not_the_later_one() -> None:
    twice = Subject(f"head:{MODEL}", {"sha256": "f" * 64})
    found = statement()
    found = msgspec.structs.replace(found, subject=(*found.subject, twice))
    with pytest.raises(EvidenceError, match="names a file twice"):
        check(found, head=HEAD | {NAME: "f" * 64})


@pytest.mark.parametrize("kind", ["_type", "predicateType"])
def test_a_signed_statement_about_something_else_is_refused(kind: str) -> None:
    document = msgspec.to_builtins(statement()) | {kind: "https://slsa.dev/provenance/v1"}
    payload = json.dumps(document).encode()
    signature = KEY.sign(encode_for_signing("application/vnd.in-toto+json", payload))
    envelope = {
        "payloadType": "application/vnd.in-toto+json",
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": "", "sig": base64.b64encode(signature).decode()}],
    }
    with pytest.raises(EvidenceError, match="not a latency verdict"):
        verify_signature(json.dumps(envelope).encode(), [KEY.public_key()])


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"payloadType":1}'])
def test_what_is_no_envelope_is_one_line(body: bytes) -> None:
    with pytest.raises(EvidenceError, match="no DSSE envelope"):
        verify_signature(body, [KEY.public_key()])


def test_thousands_of_signatures_are_not_tried_one_by_one() -> None:
    envelope = json.loads(sign(statement(), OTHER))
    envelope["signatures"] *= MAX_SIGNATURES + 1
    with pytest.raises(EvidenceError, match="no DSSE envelope"):
        verify_signature(json.dumps(envelope).encode(), [KEY.public_key()])
    envelope["signatures"] = [{"keyid": "k" * 1000, "sig": ""}]
    with pytest.raises(EvidenceError) as caught:
        verify_signature(json.dumps(envelope).encode(), [KEY.public_key()])
    assert len(str(caught.value)) < 300


def test_a_long_policy_is_refused_and_not_cut(tmp_path: Path) -> None:
    """Cut by bytes it had fewer characters than the limit, and its last keys did not count."""
    file = tmp_path / "policy.yaml"
    file.write_text(f"keys: ['{POLICY.keys[0]}']\n#{'ä' * 270_000}\ntargets: [cuda]\n")
    with pytest.raises(ConfigError, match="larger than 256 KiB"):
        read_policy(file)
    file.write_text(f"keys: ['{POLICY.keys[0]}']\n#{'ä' * 200_000}\ntargets: [cuda]\n")
    assert read_policy(file).targets == ("cuda",)
    file.unlink()
    file.symlink_to(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_policy(file)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("{margin: 3}", "gate.margin is no key of the gate"),
        ("{pairs: 12}", "gate.pairs has no order of strictness"),
        ("{margin-percent: many}", "Expected `float`"),
        ("{margin-percent: 0}", "> 0"),
    ],
)
def test_a_key_of_the_gate_that_nothing_could_be_held_to_is_refused(
    keys: str, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f"keys: ['{POLICY.keys[0]}']\ngate: {keys}\n")
    with pytest.raises(ConfigError, match=told) as caught:
        read_policy(file)
    assert "\n" not in str(caught.value)


def policy(**changed: object) -> EvidencePolicy:
    return msgspec.structs.replace(POLICY, **changed)


@pytest.mark.parametrize(
    ("policy", "head", "base", "told"),
    [
        (POLICY, {"m.onnx": "f" * 64}, None, "another model"),
        (POLICY, HEAD | {f"{NAME}.data": "f" * 64}, None, "its data files"),
        (POLICY, {NAME: "a" * 64, "moved.data": "b" * 64}, None, "its data files"),
        (POLICY, HEAD, {"now.onnx": "f" * 64}, "than what is in production"),
        (POLICY, HEAD, {"now.onnx": "e" * 64}, "than what is in production"),
        (POLICY, {NAME: "c" * 64}, None, "another model"),
        (POLICY, {"other.onnx": "d" * 64}, None, "not compared with anything"),
        (policy(policy_digests=("0" * 64,)), HEAD, None, "other rules"),
        (policy(require_production=True), HEAD, None, "give --production"),
        (policy(gate={"margin-percent": 1}), HEAD, None, "was 3, and the policy asks for 1"),
        (policy(gate={"energy-margin-percent": 9}), HEAD, None, "was not set, and the policy"),
        (policy(environment={"onnxruntime": "0.1"}), HEAD, None, "policy asks for 0.1"),
        (policy(targets=("elsewhere",)), HEAD, None, "not judged on elsewhere"),
        (policy(devices=("NVIDIA H200",)), HEAD, None, "asks for NVIDIA H200"),
    ],
)
def test_what_the_evidence_does_not_show_is_refused(
    policy: EvidencePolicy, head: Mapping[str, str], base: Mapping[str, str] | None, told: str
) -> None:
    with pytest.raises(EvidenceError, match=told):
        check(statement(), policy, head, base)


@pytest.mark.parametrize(
    ("age", "told"),
    [
        (datetime.timedelta(days=31), "31 days ago, and the policy allows"),
        (datetime.timedelta(hours=-2), "has not come yet"),
    ],
)
def test_an_old_evidence_and_one_of_the_future_are_refused(
    age: datetime.timedelta, told: str
) -> None:
    with pytest.raises(EvidenceError, match=told):
        check(statement(NOW - age))


@pytest.mark.parametrize("kind", ["fail", "inconclusive", "waived"])
def test_what_is_no_pass_is_refused(kind: str) -> None:
    found = statement()
    cells = tuple(msgspec.structs.replace(each, status=kind) for each in found.predicate.findings)
    predicate = msgspec.structs.replace(found.predicate, findings=cells)
    found = msgspec.structs.replace(found, predicate=predicate)
    with pytest.raises(EvidenceError, match=f"is {kind}"):
        check(found)
    allowed = msgspec.structs.replace(POLICY, allow_waived=True)
    if kind == "waived":
        assert check(found, allowed)


def test_a_verdict_that_measured_nothing_shows_nothing() -> None:
    verdict = parts.verdict("pass", 0)
    found = make_statement(verdict, CHANGES, None, FILES, version="0.1.0", now=NOW)
    with pytest.raises(EvidenceError, match="not compared with anything"):
        check(found)


def test_keys_that_are_none_are_refused_and_not_shown() -> None:
    assert read_public_key(public_text(KEY.public_key())) == KEY.public_key()
    with pytest.raises(EvidenceError, match="not a public key"):
        read_public_key("ed25519:c2hvcnQ=")
    with pytest.raises(EvidenceError, match="no Ed25519 key") as caught:
        read_private_key("-----BEGIN PRIVATE KEY-----\nsecret", "K")
    assert "secret" not in str(caught.value)


def test_a_bill_of_materials_has_the_interval_of_each_model() -> None:
    document = json.loads(bill_of_materials(statement()))
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    component = next(each for each in document["components"] if each["name"] == MODEL)
    assert component["hashes"] == [{"alg": "SHA-256", "content": "a" * 64}]
    metrics = component["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    finding = REPORT.verdict.findings[0]
    assert finding.change_percent is not None
    status = {"name": f"tunegate:status:{finding.target}", "value": finding.status}
    assert status in component["modelCard"]["properties"]
    change = next(each for each in metrics if "confidenceInterval" in each)
    assert float(change["confidenceInterval"]["upperBound"]) == pytest.approx(
        finding.change_percent.high, abs=0.001
    )
