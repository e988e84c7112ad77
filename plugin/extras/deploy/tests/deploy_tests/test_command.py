"""The model in production against the one to deploy, as a user compares them."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.servers.moto_server import free_port
from tests.support.workspace import FIRST_ANALYSIS, NOT_COMPILED, Workspace

from deploy_tests.scripted_web import scripted_web

pytestmark = pytest.mark.e2e


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "w", NOT_COMPILED + FIRST_ANALYSIS)


def test_the_same_model_on_both_sides_passes_at_once_and_is_pinned(workspace: Workspace) -> None:
    body = (workspace.root / "models" / "m.onnx").read_bytes()
    digest = sha256(body).hexdigest()
    with scripted_web({"/live/m.onnx": body}) as (url, _):
        address = f"{url}/live/m.onnx?signature=hidden#sha256={digest}"
        line = ("--production", address, "--candidate", "models/m.onnx", "--json")
        done = workspace.tunegate("deploy-gate", *line)
    assert done.returncode == 0, done.stderr
    assert "nothing to compare: production and candidate are the same model" in done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["status"], verdict["findings"]) == ("pass", [])
    assert verdict["revisions"]["pins"] == [
        {"address": f"{url}/live/m.onnx", "version": "", "sha256": digest},
        {"address": "models/m.onnx", "version": "", "sha256": digest},
    ]
    report = (workspace.root / ".tunegate" / "report.md").read_text()
    assert digest in report
    assert "hidden" not in done.stderr + done.stdout + report


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--candidate", "nope.onnx"), 2, "no such file"),
        (("--candidate", "ftp://example.com/m.onnx"), 2, "no models are taken from ftp:"),
        (("--candidate", "models/m.onnx", "--promote"), 2, "nothing that --promote could move"),
        (("--candidate", "models/m.onnx", "--target", "gpu"), 2, "the configuration has cpu"),
        (("--candidate", "DOWN"), 4, "no whole answer"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    workspace: Workspace, more: tuple[str, ...], code: int, said: str
) -> None:
    more = tuple(f"http://127.0.0.1:{free_port()}/m" if word == "DOWN" else word for word in more)
    done = workspace.tunegate("deploy-gate", "--production", "models/m.onnx", *more)
    assert done.returncode == code
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
