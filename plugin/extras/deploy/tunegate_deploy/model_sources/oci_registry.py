"""A client of one repository in an OCI registry: manifests and blobs, read with checked digests,
and tags. It is our own, because others read answers without limits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import ModelError
from tunegate_deploy.model_sources.docker_credentials import DOCKER_HUB
from tunegate_deploy.model_sources.peer_rules import is_loopback_name
from tunegate_deploy.model_sources.registry_challenge import authorization
from tunegate_deploy.model_sources.web import (
    WebAnswer,
    WebRequest,
    require_success,
    web_answer,
)

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_MAX_MANIFEST_BYTES = 4 * 2**20
_MAX_ANSWER_BYTES = 2**20
_UNAUTHORIZED = 401
_HUB_API = "registry-1.docker.io"


class Layer(msgspec.Struct, frozen=True, rename="camel"):
    """One file of an artifact; its name is an annotation."""

    digest: str
    size: int
    media_type: str = ""
    annotations: dict[str, str] = {}


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """The files of an artifact."""

    layers: tuple[Layer, ...]
    media_type: str = MANIFEST_TYPE


class StoredManifest(msgspec.Struct, frozen=True):
    """A manifest with the bytes that its digest covers."""

    digest: str
    body: bytes
    manifest: Manifest


class OciRegistry:
    """`host` may have a port; on this machine it is reached without encryption."""

    def __init__(self, host: str, repository: str) -> None:
        scheme = "http" if is_loopback_name(host.rpartition(":")[0] or host) else "https"
        self._host, self._repository = host, repository
        asked = _HUB_API if host == DOCKER_HUB else host
        self._root = f"{scheme}://{asked}/v2/{repository}"
        self._shown = f"oci://{host}/{repository}"
        self._authorization = ""

    def manifest(self, reference: str) -> StoredManifest:
        """Returns what a tag or digest names now. Raises ConfigError if it names nothing,
        ModelError for an invalid manifest."""
        shown = f"{self._shown}:{reference}".replace(":sha256:", "@sha256:")
        request = WebRequest(
            url=f"{self._root}/manifests/{reference}", headers={"Accept": MANIFEST_TYPE}
        )
        with self._answer(request, shown) as answer:
            body = answer.body(_MAX_MANIFEST_BYTES)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        said = reference if reference.startswith("sha256:") else digest
        if said != digest:
            raise ModelError(f"the registry sent another manifest ({digest})")
        return StoredManifest(digest, body, _decode(body))

    def blob(self, layer: Layer) -> Iterator[bytes]:
        """Yields the content of a layer. Raises ModelError if its size or digest differs."""
        found, size = hashlib.sha256(), 0
        url = f"{self._root}/blobs/{layer.digest}"
        with self._answer(WebRequest(url=url), f"{self._shown}@{layer.digest}") as answer:
            for piece in answer.pieces():
                found.update(piece)
                size += len(piece)
                if size > layer.size:
                    break
                yield piece
        if size != layer.size or f"sha256:{found.hexdigest()}" != layer.digest:
            raise ModelError(f"the layer {layer.digest[:19]} has other bytes than its digest says")

    def tag(self, name: str, stored: StoredManifest) -> None:
        """Moves the tag to a manifest that the repository already has."""
        request = WebRequest(
            url=f"{self._root}/manifests/{name}",
            method="PUT",
            body=stored.body,
            headers={"Content-Type": stored.manifest.media_type},
        )
        with self._answer(request, f"{self._shown}:{name}") as answer:
            answer.body(_MAX_ANSWER_BYTES)

    @contextmanager
    def _answer(self, request: WebRequest, address: str) -> Iterator[WebAnswer]:
        for is_last in (False, True):
            headers = dict(request.headers)
            if self._authorization:
                headers["Authorization"] = self._authorization
            with web_answer(msgspec.structs.replace(request, headers=headers)) as answer:
                if is_last or answer.status != _UNAUTHORIZED:
                    require_success(answer, address)
                    yield answer
                    return
                challenge = answer.headers.get("www-authenticate", "")
            self._authorization = authorization(self._host, challenge, address)


def _decode(body: bytes) -> Manifest:
    try:
        return msgspec.json.decode(body, type=Manifest)
    except NOT_JSON:
        message = "its manifest has no files: name an artifact that oras push made"
        raise ModelError(message) from None
