"""The receiver of examples/, between requests signed as MLflow signs them and a Kubernetes API."""

from __future__ import annotations

import base64
import hashlib
import hmac
import importlib.util
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

EXTRA = Path(__file__).parents[3]
SECRET = "not a real one"
TEMPLATE = list(yaml.safe_load_all((EXTRA / "pipelines/kubernetes/deploy-gate.yaml").read_text()))[
    -1
]


class Cluster:
    """The Jobs that a Kubernetes API was asked for. A name is taken once."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str | None]] = []

    def handler(self) -> type[BaseHTTPRequestHandler]:
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                job = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                cluster.asked.append((self.path, self.headers["Authorization"]))
                is_new = job["metadata"]["name"] not in cluster.jobs
                cluster.jobs.setdefault(job["metadata"]["name"], job)
                self.send_response(201 if is_new else 409)
                self.send_header("Content-Length", "0")
                self.end_headers()

        return Handler


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server: HTTPServer = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def address(cluster: Cluster, tmp_path: Path) -> Iterator[str]:
    path = EXTRA / "examples" / "registry_webhook.py"
    spec = importlib.util.spec_from_file_location("registry_webhook", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    (tmp_path / "namespace").write_text("models\n")
    (tmp_path / "token").write_text("of the account\n")
    with serving(cluster.handler()) as api:
        settings = {
            "secret": SECRET,
            "models": frozenset({"asr"}),
            "template": TEMPLATE,
            "api": api,
            "account": tmp_path,
        }
        with serving(type("Configured", (example.Receiver,), settings)) as receiver:
            yield receiver


def event(**data: object) -> bytes:
    return json.dumps({"entity": "model_version", "action": "created", "data": data}).encode()


def sent(address: str, body: bytes, *, secret: str = SECRET, age: int = 0, **changed: str) -> int:
    """The answer to a request that is signed as MLflow does."""
    stamp = str(int(time.time()) - age)
    signature = hmac.new(secret.encode(), b"1234." + stamp.encode() + b"." + body, hashlib.sha256)
    headers = {
        "X-MLflow-Delivery-Id": "1234",
        "X-MLflow-Timestamp": stamp,
        "X-MLflow-Signature": f"v1,{base64.b64encode(signature.digest()).decode()}",
        **{f"X-MLflow-{name.title()}": value for name, value in changed.items()},
    }
    request = urllib.request.Request(address, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_new_version_starts_one_gate_however_often_it_is_told(
    address: str, cluster: Cluster
) -> None:
    body = event(name="asr", version="7", source="s3://elsewhere/evil.onnx")
    assert [sent(address, body), sent(address, body)] == [202, 202]
    (job,) = cluster.jobs.values()
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [
        "deploy-gate",
        "--config=/config/tunegate.yaml",
        "--out=/tmp/tunegate",
        "--production=models:/asr@champion",
        "--candidate=models:/asr/7",
    ]
    assert cluster.asked[0] == ("/apis/batch/v1/namespaces/models/jobs", "Bearer of the account")


@pytest.mark.parametrize(
    "changed",
    [{"secret": "another"}, {"age": 400}, {"age": -400}, {"signature": "v1,"}, {"timestamp": "x"}],
)
def test_a_stranger_starts_nothing(changed: dict[str, Any], address: str, cluster: Cluster) -> None:
    assert sent(address, event(name="asr", version="7"), **changed) == 401
    assert cluster.asked == []


@pytest.mark.parametrize(
    "body",
    [
        event(name="other", version="7"),
        event(name="asr", version="7/../../tts/1"),
        event(name="asr"),
        event(name=["asr"], version=7) + b" ",
        b"[]",
        b"no JSON",
        event(name="asr", version="7").replace(b"created", b"deleted"),
    ],
)
def test_what_is_not_a_new_version_of_ours_starts_nothing(
    body: bytes, address: str, cluster: Cluster
) -> None:
    assert sent(address, body) == 204
    assert cluster.asked == []


def test_a_body_that_is_too_long_is_not_read(address: str) -> None:
    assert sent(address, b"x" * 70_000) == 413
