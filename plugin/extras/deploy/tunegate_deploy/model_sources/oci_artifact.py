"""A model as an artifact of an OCI registry, as `oras push` makes it: a layer per file, named by
its annotation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError
from tunegate.redaction import redact
from tunegate.system.output.artifact_file import ARTIFACT_FILE
from tunegate_deploy.model_sources.addressed_model import AddressedModel, MovableModel
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.model_files import (
    MAX_FILES,
    bring_artifact,
    bring_model,
    require_inside,
)
from tunegate_deploy.model_sources.oci_registry import Layer, OciRegistry, StoredManifest
from tunegate_deploy.model_sources.source_settings import SourceSettings

_FORM = re.compile(
    r"oci://(?P<host>[A-Za-z0-9.-]+(?::\d+)?|\[[0-9a-f:]+\](?::\d+)?)/"
    r"(?P<repository>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127})|@(?P<digest>sha256:[0-9a-f]{64}))"
)
_TITLE = "org.opencontainers.image.title"
_UNPACK = "io.deis.oras.content.unpack"
_NAMELESS = "model.onnx"


class OciArtifact:
    """Credentials come from docker, podman or ORAS."""

    def __init__(self, address: str, settings: SourceSettings) -> None:
        """Raises ConfigError for an incomplete address."""
        found = _FORM.fullmatch(address)
        if found is None:
            message = f"{redact(address, ())}: write oci://registry/repository:tag or @sha256:..."
            raise ConfigError(message)
        self._tag = found["tag"] or ""
        self._reference = self._tag or found["digest"]
        self.place = (found["host"], found["repository"])
        self._registry = OciRegistry(*self.place)
        self._address = address
        self._stored: StoredManifest | None = None

    @property
    def address(self) -> str:
        return self._address

    def resolve(self) -> str:
        return self.pinned_manifest().digest

    def pinned_manifest(self) -> StoredManifest:
        """The manifest that the address named when it was first resolved."""
        if self._stored is None:
            self._stored = self._registry.manifest(self._reference)
        return self._stored

    def download(self, into: Path, count: ByteCount) -> Path:
        layers = _layers_by_name(self.pinned_manifest().manifest.layers, count)

        def read(name: str) -> Iterator[bytes]:
            layer = layers.get(name)
            if layer is None:
                raise ModelError(f"it has no layer with the name {name!r}")
            return self._registry.blob(layer)

        if ARTIFACT_FILE in layers:
            return bring_artifact(into, read, count)
        model = PurePosixPath(_model_of(layers))
        return bring_model(model.name, into, lambda name: read(str(model.with_name(name))), count)

    def require_movable_to(self, candidate: AddressedModel) -> None:
        if not self._tag:
            message = f"{self.address}: --promote moves a tag, and a digest always names the same."
            raise ConfigError(message)
        self._neighbour(candidate)

    def move_to(self, candidate: AddressedModel, downloaded: Path) -> str:
        wanted, measured = self._neighbour(candidate).pinned_manifest(), self.pinned_manifest()
        if self._registry.manifest(self._tag).digest != measured.digest:
            message = f"{self.address}: moved since it was read, and was left alone. Run it again."
            raise EnvironmentUnfitError(message)
        self._registry.tag(self._tag, wanted)
        if self._registry.manifest(self._tag).digest != wanted.digest:
            message = f"{self.address}: somebody else moved it at the same time. Look at it."
            raise EnvironmentUnfitError(message)
        return wanted.digest

    def _neighbour(self, candidate: AddressedModel) -> OciArtifact:
        if isinstance(candidate, OciArtifact) and candidate.place == self.place:
            return candidate
        message = f"{self.address}: --promote needs a candidate of the same repository."
        raise ConfigError(message)


def _layers_by_name(layers: tuple[Layer, ...], count: ByteCount) -> dict[str, Layer]:
    """Returns layers by name. Raises ModelError for names that lead elsewhere, and for more than
    may be downloaded."""
    if len(layers) > MAX_FILES:
        message = f"it has more than {MAX_FILES:,} layers"
        raise ModelError(message)
    named: dict[str, Layer] = {}
    for layer in layers:
        name = layer.annotations.get(_TITLE, "")
        if layer.annotations.get(_UNPACK) == "true":
            message = f"{name!r} is a packed directory: push its files instead"
            raise ModelError(message)
        if not name and "onnx" in layer.media_type:
            name = _NAMELESS
        if name:
            require_inside(name)
            named[str(PurePosixPath(name))] = layer
    if sum(layer.size for layer in named.values()) > count.bytes_left:
        count.add(count.bytes_left + 1)
    return named


def _model_of(layers: dict[str, Layer]) -> str:
    """Returns the layer with ONNX's media type, or the name of an ONNX file."""
    found = [name for name, layer in layers.items() if "onnx" in layer.media_type]
    found = found or [name for name in layers if name.lower().endswith(".onnx")]
    if len(found) == 1:
        return found[0]
    if _NAMELESS in found:
        return _NAMELESS
    message = f"it has {len(found)} ONNX files, where one is needed: {', '.join(sorted(found)[:5])}"
    raise ModelError(message.rstrip(": "))


_: type[MovableModel] = OciArtifact
