"""The deploy gate against the servers that people run: an OCI registry, an MLflow tracking server,
and a hub by its own client."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest
from tests.support.programs import require, shell_program
from tests.support.servers.moto_server import free_port
from tests.support.small_onnx import conv_model, save

from deploy_tests.pipelines.deploy_clients import environment_with_clients
from deploy_tests.scripted_web import Answer, scripted_web, send
from deploy_tests.small_registry import MANIFEST, TITLE

pytestmark = [pytest.mark.pipelines, pytest.mark.timeout(900)]

OLD, NEW = (conv_model(seed=seed).SerializeToString() for seed in (1, 2))
CONFIG = """
models: [{path: "*.onnx"}]
cache: {url: cache}
targets: [{name: cpu, runtime: onnxruntime, threads: 1}]
gate: {pairs: 4, seconds: 1, extend: false, rare-launches: 0, margin-percent: 100}
"""
COMMIT = "a" * 40


def gate(
    directory: Path, *line: str, python: Path | str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    (directory / "tunegate.yaml").write_text(CONFIG)
    command = [str(python), "-P", "-m", "tunegate", "deploy-gate", *line]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )


def pins(directory: Path) -> list[dict[str, str]]:
    verdict = json.loads((directory / ".tunegate" / "verdict.json").read_text())
    found: list[dict[str, str]] = verdict["revisions"]["pins"]
    return found


@contextmanager
def running(command: list[str], url: str, directory: Path) -> Iterator[None]:
    with (directory / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory)
        try:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and not answers(url):
                time.sleep(0.2)
            yield
        finally:
            server.terminate()
            server.wait()


def answers(url: str) -> bool:
    """Returns True where a server is there, be it one that wants a login."""
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except OSError as error:
        return isinstance(error, HTTPError)
    return True


def test_a_tag_of_a_registry_is_gated_and_moved(tmp_path: Path) -> None:
    with registry(tmp_path) as url:
        old, new = push(url, "live", OLD), push(url, "2", NEW)
        place = place_at(url)
        line = ("--production", f"{place}:live", "--candidate", f"{place}:2", "--promote")
        done = gate(tmp_path, *line)
        assert done.returncode == 0, done.stderr
        assert [pin["version"] for pin in pins(tmp_path)] == [old, new]
        assert f"{place}:live: moved to {new}" in done.stderr
        done = gate(tmp_path, "--production", f"{place}:live", "--candidate", f"{place}@{new}")
        assert "nothing to compare" in done.stderr
        done = gate(tmp_path, "--production", f"{place}:gone", "--candidate", f"{place}:2")
        assert (done.returncode, "not there (404)" in done.stderr) == (2, True)


def test_a_helper_program_of_docker_logs_in(tmp_path: Path) -> None:
    """The registry keeps bcrypt's digest of the password `secret`."""
    users = tmp_path / "users"
    users.write_text("ci:$2y$04$336P7O3amk1qeajYytEkxeC2JZMHqFLrnSxOsJgBUcHkPsxjNO9ee\n")
    helper = tmp_path / "bin" / "docker-credential-some"
    (tmp_path / "config.json").write_text('{"credsStore": "some"}')
    with registry(tmp_path, f"auth: {{htpasswd: {{realm: x, path: '{users}'}}}}\n") as url:
        host = urlsplit(url).netloc
        answer = """echo '{"ServerURL": "", "Username": "ci", "Secret": "secret"}'"""
        shell_program(helper, f"""test "$(cat)" = {host} && {answer}""")
        for tag, model in (("live", OLD), ("2", NEW)):
            push(url, tag, model, f"Basic {b64encode(b'ci:secret').decode()}")
        line = ("--production", f"{place_at(url)}:live", "--candidate", f"{place_at(url)}:2")
        login = {"DOCKER_CONFIG": str(tmp_path), "PATH": f"{helper.parent}:{os.environ['PATH']}"}
        done = gate(tmp_path, *line, "--promote", **login)
        assert done.returncode == 0, done.stderr
        assert f"{place_at(url)}:live: moved to {pins(tmp_path)[1]['version']}" in done.stderr
        done = gate(tmp_path, *line, DOCKER_CONFIG=str(tmp_path / "none"))
        assert (done.returncode, f"Run: oras login {host}" in done.stderr) == (2, True)


@contextmanager
def registry(directory: Path, more: str = "") -> Iterator[str]:
    """The address of the registry's API. `more` is added to its configuration."""
    require("docker-registry")
    port = free_port()
    (directory / "registry.yml").write_text(
        f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {directory / 'blobs'}}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n{more}"
    )
    url = f"http://127.0.0.1:{port}/v2/"
    with running(["docker-registry", "serve", str(directory / "registry.yml")], url, directory):
        yield url


def place_at(url: str) -> str:
    return f"oci://{urlsplit(url).netloc}/acme/asr"


def push(url: str, tag: str, model: bytes, login: str = "") -> str:
    """Pushes an artifact as `oras push` does. Returns the digest of its manifest."""
    digests = []
    for body in (b"{}", model):
        digests.append(f"sha256:{hashlib.sha256(body).hexdigest()}")
        begun = ask("POST", f"{url}acme/asr/blobs/uploads/", b"", login)
        mark = "&" if "?" in begun else "?"
        ask("PUT", f"{begun}{mark}digest={digests[-1]}", body, login, "application/octet-stream")
    layer = {"mediaType": "application/onnx", "digest": digests[1], "size": len(model)}
    config = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digests[0], "size": 2}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [{**layer, "annotations": {TITLE: "m.onnx"}}],
    }
    body = json.dumps(manifest).encode()
    ask("PUT", f"{url}acme/asr/manifests/{tag}", body, login, MANIFEST)
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def ask(method: str, url: str, body: bytes, login: str, kind: str = "application/json") -> str:
    headers = {"Content-Type": kind, **({"Authorization": login} if login else {})}
    request = urllib.request.Request(url, body, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return str(answer.headers.get("Location", ""))


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment_with_clients(tmp_path_factory.mktemp("clients"))


LOGGING = """
import mlflow
from tests.support.small_onnx import conv_model
for seed in (1, 2):
    mlflow.onnx.log_model(conv_model(seed=seed), name="model", registered_model_name="asr")
mlflow.MlflowClient().set_registered_model_alias("asr", "live", "1")
"""


def test_an_alias_of_mlflow_is_gated_and_moved(clients: Path, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        *(str(clients / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", f"sqlite:///{tmp_path / 'mlflow.db'}"),
        *("--artifacts-destination", str(tmp_path / "files")),
    ]
    with running(command, f"{url}/health", tmp_path):
        environment = {**os.environ, "MLFLOW_TRACKING_URI": url}
        subprocess.run([clients / "python", "-c", LOGGING], env=environment, check=True)

        def gated(*line: str) -> subprocess.CompletedProcess[str]:
            return gate(tmp_path, *line, python=clients / "python", MLFLOW_TRACKING_URI=url)

        line = ("--production", "models:/asr@live", "--candidate", "models:/asr/2", "--promote")
        done = gated(*line)
        assert done.returncode == 0, done.stderr
        assert [pin["version"] for pin in pins(tmp_path)] == ["version 1", "version 2"]
        assert "models:/asr@live: moved to version 2" in done.stderr
        done = gated("--production", "models:/asr@live", "--candidate", "models:/asr/2")
        assert "nothing to compare" in done.stderr
        done = gated("--production", "models:/asr/9", "--candidate", "models:/asr/2")
        assert (done.returncode, "RESOURCE_DOES_NOT_EXIST" in done.stderr) == (2, True)


def test_a_revision_of_a_hub_is_pinned_to_its_commit(clients: Path, tmp_path: Path) -> None:
    save(conv_model(seed=1), tmp_path / "new.onnx")
    described = {"id": "acme/asr", "sha": COMMIT, "siblings": [{"rfilename": "onnx/model.onnx"}]}
    info = json.dumps(described).encode()
    answers: dict[str, Answer | bytes] = {
        "/api/models/acme/asr/revision/v1.2": lambda request: send(
            request, 200, info, {"Content-Type": "application/json"}
        ),
        f"/acme/asr/resolve/{COMMIT}/onnx/model.onnx": hub_file,
    }
    with scripted_web(answers) as (url, asked_for):
        line = ("--production", "hf://acme/asr@v1.2", "--candidate", "new.onnx")
        done = gate(tmp_path, *line, python=clients / "python", HF_ENDPOINT=url)
        assert done.returncode == 0, done.stderr + "\n".join(asked_for.lines)
        assert pins(tmp_path)[0]["version"] == f"commit {COMMIT}"
        line = ("--production", "hf://acme/none@v1", "--candidate", "new.onnx")
        done = gate(tmp_path, *line, python=clients / "python", HF_ENDPOINT=url)
        assert done.returncode == 2, done.stderr
    assert "nothing to compare" not in done.stderr


def hub_file(request: BaseHTTPRequestHandler) -> None:
    headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{hashlib.sha256(OLD).hexdigest()}"'}
    send(request, 200, OLD, headers)
