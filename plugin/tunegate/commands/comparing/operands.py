"""The operands of `tunegate compare`: two names, parsed."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from tunegate.artifacts.candidates import RuntimeName
from tunegate.errors import ConfigError
from tunegate.known_extras import refuse_missing
from tunegate.redaction import redacted
from tunegate.runtimes.registry import RUNTIME_GROUP
from tunegate_cache.installed_plugins import plugin_named

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|models:/")


class Model(msgspec.Struct, frozen=True):
    """An ONNX file; `runtime` is one, or a candidate of one; None where the
    fastest may run it."""

    file: Path
    runtime: RuntimeName | None = None


class Artifact(msgspec.Struct, frozen=True):
    """A directory with an `artifact.json`."""

    directory: Path


class Artifacts(msgspec.Struct, frozen=True):
    """Two artifacts to compare; nothing is built."""

    base: Path
    head: Path


class AgainstModel(msgspec.Struct, frozen=True):
    """The head is built, and the base where it is a model too."""

    base: Model | Artifact
    head: Model


def understood(base: str, head: str) -> Artifacts | AgainstModel:
    """A directory is an artifact, all else an ONNX file, with a runtime and a colon before it
    where it must be built for that. Raises ConfigError for an artifact against an older model."""
    return against(_side(base), _side(head))


def against(base: Model | Artifact, head: Model | Artifact) -> Artifacts | AgainstModel:
    """Raises ConfigError for an artifact against an older model."""
    if isinstance(head, Model):
        return AgainstModel(base, head)
    if isinstance(base, Artifact):
        return Artifacts(base.directory, head.directory)
    message = (
        f"{head.directory}: a model is compared with an artifact, not the other way. Name it first."
    )
    raise ConfigError(message)


def _side(text: str) -> Model | Artifact:
    runtime, _, file = text.partition(":")
    installed = runtime.partition("-")[0]
    if file and plugin_named(RUNTIME_GROUP, installed) is not None:
        return Model(Path(file), runtime)
    path = Path(text)
    if _ADDRESS.match(text):
        message = (
            f"{redacted(text.partition('?')[0], ())}: compare takes files and directories of this "
            "machine. Gate addresses with tunegate deploy-gate."
        )
        raise ConfigError(message)
    if file and not path.exists():
        refuse_missing("runtime", installed)
    return Artifact(path) if path.is_dir() else Model(path)
