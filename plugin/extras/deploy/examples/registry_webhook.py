"""Starts the deploy gate when MLflow has a new version of a model: a receiver of its webhook.

It needs Python alone and the right to create Jobs in one namespace: the extra's README.md.
"""

from __future__ import annotations

import base64
import binascii
import copy
import hashlib
import hmac
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

MAX_AGE_SECONDS = 300
MAX_BODY_BYTES = 65_536
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_signed(headers: Message, body: bytes, secret: str, now: float) -> bool:
    """Returns whether MLflow wrote it, with our secret and lately."""
    sent, delivery = headers.get("X-MLflow-Timestamp", ""), headers.get("X-MLflow-Delivery-Id", "")
    version, _, text = headers.get("X-MLflow-Signature", "").partition(",")
    if version != "v1" or not sent.isdecimal() or abs(now - int(sent)) > MAX_AGE_SECONDS:
        return False
    try:
        signature = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    signed = f"{delivery}.{sent}.".encode() + body
    return hmac.compare_digest(signature, hmac.digest(secret.encode(), signed, hashlib.sha256))


def new_version(body: bytes, models: frozenset[str]) -> tuple[str, int] | None:
    """The name and number of a new version, where it is of one of our models."""
    try:
        event = json.loads(body)
        name, version = str(event["data"]["name"]), str(event["data"]["version"])
    except (ValueError, KeyError, TypeError):
        return None
    is_ours = (event.get("entity"), event.get("action")) == ("model_version", "created")
    if not is_ours or name not in models or not re.fullmatch(r"[1-9][0-9]{0,8}", version):
        return None
    return name, int(version)


def job_for(template: Mapping[str, Any], name: str, version: int) -> dict[str, Any]:
    """The Job of a version. Its name says which, so a second delivery makes no second Job."""
    job = copy.deepcopy(dict(template))
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    job["metadata"] = {"name": f"tunegate-{digest}-{version}"}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    kept = [a for a in container["args"] if not a.startswith(("--production=", "--candidate="))]
    sides = [f"--production=models:/{name}@champion", f"--candidate=models:/{name}/{version}"]
    container["args"] = kept + sides
    return job


def create(job: Mapping[str, Any], api: str, account: Path) -> int:
    """The answer of Kubernetes: 201, or 409 where the Job was there."""
    namespace = (account / "namespace").read_text().strip()
    request = urllib.request.Request(
        f"{api}/apis/batch/v1/namespaces/{namespace}/jobs",
        data=json.dumps(job).encode(),
        headers={
            "Authorization": f"Bearer {(account / 'token').read_text().strip()}",
            "Content-Type": "application/json",
        },
    )
    context = None
    if api.startswith("https:"):
        context = ssl.create_default_context(cafile=str(account / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


class Receiver(BaseHTTPRequestHandler):
    """Answers 202 where there is a Job now, 204 where none is needed, 401 to strangers."""

    secret: ClassVar[str]
    models: ClassVar[frozenset[str]]
    template: ClassVar[Mapping[str, Any]]
    api: ClassVar[str] = "https://kubernetes.default.svc"
    account: ClassVar[Path] = ACCOUNT
    timeout = 10

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not is_signed(self.headers, body, self.secret, time.time()):
            return self.answer(401)
        version = new_version(body, self.models)
        if version is None:
            return self.answer(204)
        created = create(job_for(self.template, *version), self.api, self.account)
        return self.answer(202 if created in {201, 409} else 502)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    Receiver.secret = os.environ["WEBHOOK_SECRET"]
    Receiver.models = frozenset(os.environ["MODELS"].split(","))
    Receiver.template = json.loads(Path(os.environ["JOB"]).read_text())
    ThreadingHTTPServer(("", 8080), Receiver).serve_forever()
