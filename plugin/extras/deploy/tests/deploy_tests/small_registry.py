"""An OCI registry on loopback with one repository, as far as its clients here ask it."""

from __future__ import annotations

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler

from deploy_tests.scripted_web import Answer, send

TITLE = "org.opencontainers.image.title"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class SmallRegistry:
    """`answers` are what a scripted web server has to answer. `login` is what it wants, "" for
    everybody; who has it gets the token."""

    def __init__(self, login: str = "") -> None:
        self.answers: dict[str, Answer | bytes] = {"/token": self._token}
        self._login = login
        self.tags: dict[str, bytes] = {}

    def push(self, tag: str, files: dict[str, bytes], **annotations: str) -> str:
        """Returns the digest of the manifest."""
        layers = []
        for name, body in files.items():
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            self.answers[f"/v2/acme/asr/blobs/{digest}"] = self._guarded(body)
            layers.append(
                {
                    "mediaType": "application/octet-stream",
                    "digest": digest,
                    "size": len(body),
                    "annotations": {TITLE: name, **annotations},
                }
            )
        return self.put(tag, json.dumps({"mediaType": MANIFEST, "layers": layers}).encode())

    def put(self, tag: str, manifest: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        self.tags[tag] = manifest
        self.answers[f"/v2/acme/asr/manifests/{tag}"] = self._tag
        self.answers[f"/v2/acme/asr/manifests/{digest}"] = self._guarded(manifest)
        return digest

    def _tag(self, request: BaseHTTPRequestHandler) -> None:
        if self._refused(request):
            return
        tag = request.path.rpartition("/")[2]
        if request.command == "PUT":
            self.tags[tag] = request.rfile.read(int(request.headers["Content-Length"]))
            send(request, 201)
        else:
            send(request, 200, self.tags[tag])

    def _guarded(self, body: bytes) -> Answer:
        return lambda request: None if self._refused(request) else send(request, 200, body)

    def _refused(self, request: BaseHTTPRequestHandler) -> bool:
        if not self._login or request.headers.get("Authorization") == "Bearer t0ken":
            return False
        realm = f"http://{request.headers['Host']}/token"
        challenge = f'Bearer realm="{realm}",service="r",scope="repository:acme/asr:pull"'
        send(request, 401, headers={"WWW-Authenticate": challenge})
        return True

    def _token(self, request: BaseHTTPRequestHandler) -> None:
        wanted = f"Basic {base64.b64encode(self._login.encode()).decode()}"
        if request.headers.get("Authorization") == wanted:
            send(request, 200, b'{"token": "t0ken"}')
        else:
            send(request, 401)
