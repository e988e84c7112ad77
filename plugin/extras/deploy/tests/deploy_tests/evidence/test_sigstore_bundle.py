"""Evidence that a CI job's identity has signed, checked offline with the package sigstore."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from tests.support.small_onnx import conv_model, save

from deploy_tests.evidence.sigstore_stand_in import ISSUER, SigstoreStandIn
from deploy_tests.evidence.test_evidence import CHANGES, FILES, KEY, MODEL, NOW, REPORT, statement
from tunegate.artifacts.changes import Side
from tunegate.errors import ConfigError
from tunegate_deploy.evidence.envelope import EvidenceError, sign
from tunegate_deploy.evidence.policy import read_policy
from tunegate_deploy.evidence.statement import JudgedCell, make_statement
from tunegate_deploy.evidence.verify import shown_by

pytest.importorskip("sigstore", reason="the package sigstore is not installed")
JOB = "https://github.com/acme/models/.github/workflows/gate.yml@refs/heads/main"
REAL, FOREIGN = SigstoreStandIn(), SigstoreStandIn()


class Place:
    """A directory with a model, a policy that names a job, and a trusted root."""

    def __init__(self, root: Path) -> None:
        self.root, self.model = root, root / "new.onnx"
        save(conv_model(), self.model)
        digest = hashlib.sha256(self.model.read_bytes()).hexdigest()
        files: dict[tuple[Side, str], str] = {**FILES, ("head", MODEL): digest}
        found = make_statement(REPORT.verdict, CHANGES, REPORT.run, files, version="1", now=NOW)
        self.payload = msgspec.json.encode(found)
        (root / "trusted_root.json").write_text(REAL.trusted_root())
        self.write_policy({"identity": JOB, "issuer": ISSUER})

    def write_policy(self, *identities: Mapping[str, str], **other: object) -> None:
        policy = {
            "identities": identities,
            "trusted-root": "trusted_root.json",
            "max-age-days": 9999,
        }
        (self.root / "policy.yaml").write_text(json.dumps(policy | other))

    def shown(self, evidence: object) -> tuple[JudgedCell, ...]:
        file = self.root / "bundle.json"
        file.write_text(evidence if isinstance(evidence, str) else json.dumps(evidence))
        return shown_by(file, read_policy(self.root / "policy.yaml"), self.model, None)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_attestation_of_a_job_that_the_policy_names_shows_the_pass(place: Place) -> None:
    cells = place.shown(REAL.bundle(place.payload, JOB))
    assert {each.status for each in cells} == {"pass"}
    another = {"identity": JOB.replace("acme", "emca"), "issuer": ISSUER}
    place.write_policy(another, {"identity": JOB, "issuer": ISSUER})
    assert place.shown(REAL.bundle(place.payload, JOB)) == cells


def games(payload: bytes) -> dict[str, tuple[object, str]]:
    """Evidence that must be refused, and what is said of it."""
    other = payload.replace(b'"seed":"', b'"seed":"1')
    assert other != payload
    whole = REAL.bundle(payload, JOB)
    material, envelope = whole["verificationMaterial"], whole["dsseEnvelope"]
    assert isinstance(material, dict)
    assert isinstance(envelope, dict)
    (entry,) = material["tlogEntries"]
    younger = {**entry, "integratedTime": str(int(entry["integratedTime"]) + 60)}
    sham = envelope | {"payload": base64.b64encode(other).decode()}
    by_other = REAL.bundle(other, JOB)
    pull_request = JOB.replace("refs/heads/main", "refs/pull/7/merge")
    return {
        "a pull request of the same workflow": (REAL.bundle(payload, pull_request), "refs/pull/7"),
        "another repository": (REAL.bundle(payload, JOB.replace("acme", "emca")), "emca"),
        "a name that begins like it": (REAL.bundle(payload, f"{JOB}2"), "main2"),
        "another issuer": (REAL.bundle(payload, JOB, f"{ISSUER}.example"), "another issuer"),
        "an authority of its own": (FOREIGN.bundle(payload, JOB), "certificate chain"),
        "an altered payload": (whole | {"dsseEnvelope": sham}, "invalid signature"),
        "the log entry of another": (
            whole | {"dsseEnvelope": by_other["dsseEnvelope"]},
            "invalid signature",
        ),
        "the certificate of another": (
            by_other | {"verificationMaterial": material},
            "invalid signature",
        ),
        "a time that the log did not sign": (
            whole | {"verificationMaterial": material | {"tlogEntries": [younger]}},
            "inclusion promise",
        ),
        "no log entry": (
            whole | {"verificationMaterial": material | {"tlogEntries": []}},
            "exactly one log entry",
        ),
        "no certificate": (
            whole | {"verificationMaterial": {"tlogEntries": [entry]}},
            "failed to load bundle",
        ),
        "an envelope without its proof": (envelope, "no trusted key"),
        "another predicate": (
            REAL.bundle(payload.replace(b"latency-verdict/v1", b"latency-verdict/v9"), JOB),
            "not a latency verdict",
        ),
        "cut": (json.dumps(whole)[:-40], "no DSSE envelope"),
    }


@pytest.mark.parametrize("game", games(msgspec.json.encode(statement())))
def test_an_attestation_that_does_not_hold_is_refused_in_one_line(place: Place, game: str) -> None:
    evidence, told = games(place.payload)[game]
    with pytest.raises(EvidenceError, match=told) as caught:
        place.shown(evidence)
    assert "\n" not in str(caught.value)


def test_the_attestation_of_another_model_is_refused(place: Place) -> None:
    save(conv_model(channels=5), place.model)
    with pytest.raises(EvidenceError, match="about another model"):
        place.shown(REAL.bundle(place.payload, JOB))


def test_a_policy_of_keys_alone_takes_no_attestation(place: Place) -> None:
    place.write_policy(keys=["ed25519:Gq4S247yzmZCdrYzRo+yDQnisQQ+jqM7C9UIaCvPtV4="])
    with pytest.raises(EvidenceError, match="the policy has no identities"):
        place.shown(REAL.bundle(place.payload, JOB))
    place.write_policy({"identity": JOB, "issuer": ISSUER})
    with pytest.raises(EvidenceError, match="no trusted key"):
        place.shown(sign(statement(), KEY).decode())


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ({"identities": []}, "nobody who may sign"),
        ({"trusted-root": ""}, "identities need a trusted-root"),
        ({"identities": [{"identity": JOB, "issuer": ""}]}, "length >= 1"),
        ({"identities": [{"identity": JOB}]}, "missing required field `issuer`"),
        ({"trusted-root": "nowhere.json"}, "nowhere.json: no trusted root"),
        ({"trusted-root": "new.onnx"}, "new.onnx: no trusted root"),
        (
            {"trusted-root": "hollow.json"},
            "hollow.json: no trusted root .*not found in trusted root",
        ),
    ],
)
def test_a_policy_that_would_trust_anybody_is_refused(
    place: Place, policy: Mapping[str, object], told: str
) -> None:
    hollow = {**json.loads(REAL.trusted_root()), "certificateAuthorities": []}
    (place.root / "hollow.json").write_text(json.dumps(hollow))
    place.write_policy({"identity": JOB, "issuer": ISSUER}, **policy)
    with pytest.raises(ConfigError, match=told):
        place.shown(REAL.bundle(place.payload, JOB))


def test_the_check_of_an_attestation_loads_no_client_of_a_network(place: Place) -> None:
    """They are most of what the package imports, and this check is to take less than a second."""
    place.shown(REAL.bundle(place.payload, JOB))
    script = (
        "import sys; from tunegate_deploy.evidence.verify import shown_by; "
        "from tunegate_deploy.evidence.policy import read_policy; from pathlib import Path; "
        "root = Path(sys.argv[1]); policy = read_policy(root / 'policy.yaml'); "
        "assert shown_by(root / 'bundle.json', policy, root / 'new.onnx', None); "
        "print(sorted({'boto3', 'requests', 'tuf.ngclient'} & set(sys.modules))); "
        "import requests; requests.Session()"  # whoever needs it later gets the real one
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(place.root)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


def test_without_the_package_it_says_what_to_install(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sigstore", None)
    with pytest.raises(ConfigError, match=r"tunegate-deploy\[sigstore\]"):
        place.shown(REAL.bundle(place.payload, JOB))


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ("import requests; requests.Session(); from sigstore.gone import Bundle", "sigstore.gone"),
        ("TrustedRoot = type('R', (), {'from_file': str}); Bundle = None", "does not check this"),
    ],
)
def test_another_version_of_the_package_is_one_line(place: Place, models: str, told: str) -> None:
    place.shown(REAL.bundle(place.payload, JOB))
    other = place.root / "other"
    (other / "sigstore").mkdir(parents=True)
    (other / "sigstore" / "__init__.py").touch()
    (other / "sigstore" / "models.py").write_text(models)
    (other / "sigstore" / "verify.py").write_text("Verifier = dict")
    (other / "sigstore-9.0.dist-info").mkdir()
    (other / "sigstore-9.0.dist-info" / "METADATA").write_text("Name: sigstore\nVersion: 9.0\n")
    line = "-m tunegate verify bundle.json --policy policy.yaml --model new.onnx"
    done = subprocess.run(
        [sys.executable, *line.split()],
        env={**os.environ, "PYTHONPATH": str(other)},
        cwd=place.root,
        capture_output=True,
        text=True,
        check=False,
    )
    (said,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "sigstore 9.0" in said
    assert told in said
