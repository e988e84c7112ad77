"""An evidence from a run in a repository to the place where the model is deployed."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from tests.support.small_onnx import conv_model, save
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, Workspace

from tunegate.errors import INCONCLUSIVE
from tunegate_cache.format.signing import public_text

pytestmark = pytest.mark.e2e
KEY = Ed25519PrivateKey.from_private_bytes(b"7" * 32)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
GATE = FIRST_ANALYSIS + "  margin-percent: 100\n  tail-margin-percent: 1000\n"


class Deployment:
    """A repository whose head passed against its base, and both models as files elsewhere."""

    def __init__(self, root: Path) -> None:
        self.workspace = Workspace(root / "w", NOT_COMPILED + GATE)
        self.elsewhere = root / "elsewhere"
        self.elsewhere.mkdir()
        model = self.workspace.root / "models" / "m.onnx"
        shutil.copy(model, self.elsewhere / "now.onnx")
        save(conv_model(channels=16, out=32, size=14, seed=3), model)
        self.workspace.commit()
        shutil.copy(model, self.elsewhere / "new.onnx")
        keys = f"keys: ['{public_text(KEY.public_key())}']\n"
        (self.elsewhere / "policy-of-today.yaml").write_text(keys)
        (self.elsewhere / "policy.yaml").symlink_to("policy-of-today.yaml")

    def gate(self) -> None:
        done = self.workspace.tunegate("run", "--base", "HEAD~1")
        if done.returncode == INCONCLUSIVE:  # the machine stalled, and that may be the head's
            done = self.workspace.tunegate("run", "--base", "HEAD~1")
        assert done.returncode == 0, done.stderr
        done = self.workspace.tunegate("attest", "--cyclonedx", "--json", TUNEGATE_EVIDENCE_KEY=PEM)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["predicate"]["status"] == "pass"
        shutil.copy(self.workspace.root / ".tunegate" / "evidence.json", self.elsewhere)

    def verify(self, *line: str) -> subprocess.CompletedProcess[str]:
        place = self.elsewhere
        return self.workspace.tunegate(
            "verify",
            str(place / "evidence.json"),
            "--policy",
            str(place / "policy.yaml"),
            *line,
            **{name: "" for name in os.environ if name.startswith("AWS_")},
        )


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    found = Deployment(tmp_path_factory.mktemp("evidence"))
    found.gate()
    return found


def test_a_model_that_passed_may_be_deployed_in_place_of_its_base(deployment: Deployment) -> None:
    """Kubernetes mounts a policy behind a link, and hubs keep a model so."""
    place = deployment.elsewhere
    (place / "latest.onnx").symlink_to("new.onnx")
    line = ("--model", str(place / "latest.onnx"), "--production", str(place / "now.onnx"))
    done = deployment.verify(*line)
    assert done.returncode == 0, done.stderr
    assert "models/m.onnx on cpu: pass" in done.stderr
    assert "an older pass counts too" not in done.stderr
    done = deployment.verify("--model", str(place / "new.onnx"), "--json")
    assert (done.returncode, "an older pass counts too" in done.stderr) == (0, True)
    assert [each["status"] for each in json.loads(done.stdout)] == ["pass"]


@pytest.mark.parametrize(
    ("model", "production", "told"),
    [("now", "now", "another model"), ("new", "new", "than what is in production")],
)
def test_another_model_or_another_production_is_refused_in_one_line(
    deployment: Deployment, model: str, production: str, told: str
) -> None:
    place = deployment.elsewhere
    files = ("--model", f"{place / model}.onnx", "--production", f"{place / production}.onnx")
    done = deployment.verify(*files)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_deploy_gate_takes_it_in_place_of_a_measurement(deployment: Deployment) -> None:
    place = deployment.elsewhere
    line = ["deploy-gate", "--production", str(place / "now.onnx"), "--json"]
    line += ["--candidate", str(place / "new.onnx"), "--out", str(place / "out")]
    line += ["--evidence", str(place / "evidence.json")]
    done = deployment.workspace.tunegate(*line, "--evidence-policy", str(place / "policy.yaml"))
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["status"], verdict["findings"]) == ("pass", [])
    assert "nothing was measured: signed evidence shows the pass" in done.stderr
    assert "the same model" not in done.stderr
    assert "what the evidence shows: cpu: " in done.stderr
    for lone in ("--evidence", "--evidence-policy"):
        refused = deployment.workspace.tunegate(*line[:-2], lone, str(place / "policy.yaml"))
        assert (refused.returncode, "--evidence-policy" in refused.stderr) == (2, True)


def test_files_of_another_run_are_not_signed(deployment: Deployment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(deployment.workspace.root / ".tunegate", out)
    measurements = json.loads((out / "measurements.json").read_text())
    measurements.pop("digest")
    (out / "measurements.json").write_text(json.dumps(measurements))
    done = deployment.workspace.tunegate("attest", "--out", str(out), TUNEGATE_EVIDENCE_KEY=PEM)
    assert done.returncode == 2
    assert "measurements.json" in done.stderr


def test_a_verdict_does_not_become_younger_by_being_signed_again(
    deployment: Deployment, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(deployment.workspace.root / ".tunegate", out)
    (out / "verdict.json").touch()  # as an artifact of another job is written
    done = deployment.workspace.tunegate("attest", "--out", str(out), TUNEGATE_EVIDENCE_KEY=PEM)
    assert done.returncode == 0, done.stderr
    predicate = json.loads((out / "predicate.json").read_text())
    judged_at = json.loads((out / "verdict.json").read_text())["origin"]["judged_at"]
    finished = datetime.datetime.fromisoformat(predicate["finishedAt"])
    assert finished.timestamp() == judged_at


def test_without_a_key_nothing_is_signed(deployment: Deployment) -> None:
    done = deployment.workspace.tunegate("attest", TUNEGATE_EVIDENCE_KEY="")
    assert done.returncode == 2
    assert "TUNEGATE_EVIDENCE_KEY is not set" in done.stderr
    done = deployment.workspace.tunegate("attest", "--unsigned", TUNEGATE_EVIDENCE_KEY="")
    assert done.returncode == 0, done.stderr
    out = deployment.workspace.root / ".tunegate"
    subjects = json.loads((out / "statement.json").read_text())["subject"]
    sums = [f"{each['digest']['sha256']}  {each['name']}" for each in subjects]
    assert (out / "subjects.sha256").read_text().splitlines() == sums


def test_a_verdict_that_was_committed_is_not_signed(deployment: Deployment) -> None:
    workspace = deployment.workspace
    shutil.copytree(workspace.root / ".tunegate", workspace.root / "results")
    subprocess.run(["git", "add", "-f", "results"], cwd=workspace.root, check=True)
    done = workspace.tunegate("attest", "--out", "results", TUNEGATE_EVIDENCE_KEY=PEM)
    assert (done.returncode, "git tracks results" in done.stderr) == (2, True), done.stderr
