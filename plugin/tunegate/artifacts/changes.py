"""The result of detection: the configured models that a change touches, how it touches them, and
how the head's configuration differs from the one that judges."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

ModelPath = str
Side = Literal["base", "head"]
ModelSide = tuple[ModelPath, Side]
SIDES: tuple[Side, Side] = ("base", "head")
Effect = Literal["loosened", "tightened", "changed"]


class ModelPin(msgspec.Struct, frozen=True, kw_only=True):
    """The content behind an address when it was read: `version` in the words of the registry, empty
    without one, and the SHA-256 of the measured content."""

    address: str
    version: str
    sha256: str


class Revisions(msgspec.Struct, frozen=True, kw_only=True):
    """Full commit ids. `base` is None when there is nothing to compare with; `reason` says how
    the two were chosen, in words for the report. `release` is the tag of the base where everything
    since a release is judged together. `policy` is the commit whose configuration judges, where
    that is not the base. `pins` are what base and head were read from, where that is no repository:
    then the ids are digests of content."""

    base: str | None
    head: str
    reason: str = ""
    release: str = ""
    policy: str = ""
    pins: tuple[ModelPin, ...] = ()

    @property
    def judged_by(self) -> str | None:
        """The commit whose configuration judges, if there is one."""
        return self.policy or self.base

    @property
    def forked_at(self) -> str | None:
        """The base, where what judges is newer: rules that the head has
        from there are not its own."""
        return self.base if self.policy and not self.release else None


class ExternalFile(msgspec.Struct, frozen=True):
    """A file of tensor data beside the model; `digest` names its content."""

    path: str
    digest: str


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one revision.

    `content_digest` names the bytes (for LFS and DVC it comes from the pointer, nothing is
    downloaded); a `link` is a symbolic link, which nobody follows, and what is stored in git and by
    DVC as well (`both`) has no content that all agree on. `graph_digest` is the sha-256 of the
    graph without tensor data, None where the bytes are not at hand, '' where they are no ONNX file.
    """

    revision: str
    path: ModelPath
    content_digest: str
    graph_digest: str | None
    storage: Literal["git", "lfs", "dvc", "both", "link"]
    size_bytes: int
    external: tuple[ExternalFile, ...] = ()

    @property
    def contents(self) -> tuple[str, ...]:
        """The digests of the model and of its data files: equal for equal bytes, wherever they
        lie."""
        return (self.content_digest, *(file.digest for file in self.external))


class Ancestor(msgspec.Struct, frozen=True, kw_only=True):
    """An older base: it lies `commits` before the base revision, because no version in between can
    be compiled."""

    commits: int
    reason: str


class LayerChange(msgspec.Struct, frozen=True):
    """A layer of the graph that differs between base and head, and how, in a few words: its
    operator, the shapes of its weights, its attributes."""

    name: str
    change: str


class ModelChange(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of one configured model between base and head. `change` is set for `modified`:
    weights only, the graph, what the config asks of it, or unknown (treated as structural). An
    `unreadable` model has turned into something that is no file: it is an error. An `upgraded` one
    is the head's on both sides, with the packages of a lock file at base and head. `layers` are the
    first that a change of structure touches, `more_layers` counts the others."""

    path: ModelPath
    kind: Literal["added", "modified", "renamed", "deleted", "unreadable", "upgraded"]
    change: Literal["weights-only", "structural", "config", "unknown"] | None
    base: ModelVersion | None
    head: ModelVersion | None
    targets: tuple[str, ...]
    reason: str = ""
    ancestor: Ancestor | None = None
    layers: tuple[LayerChange, ...] = ()
    more_layers: int = 0


class PolicyChange(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `key` is the key of the file; `old` and `new` are what base and head write.

    `counts` says whether this verdict was already reached with the new value. `model` is a path, or
    the glob of an entry where several of its models are concerned.
    """

    key: str
    old: str
    new: str
    effect: Effect
    counts: Literal["now", "once merged"]
    model: str = ""
    target: str = ""

    @property
    def weakens(self) -> bool:
        """Returns whether somebody has to agree to the change: it is not stricter than before."""
        return self.effect != "tightened"


class ChangeSet(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `changes.json`. `unchanged` are the configured models the change does not
    touch, `uncovered` the model files of the head that no rule covers."""

    schema: Literal[1] = 1
    revisions: Revisions
    models: tuple[ModelChange, ...]
    unchanged: tuple[ModelPath, ...] = ()
    notes: tuple[str, ...] = ()
    policy_changes: tuple[PolicyChange, ...] = ()
    uncovered: tuple[ModelPath, ...] = ()


def has_base(changes: ChangeSet) -> bool:
    """Returns whether anything is compared: warmed and new models have a head alone."""
    return any(change.base is not None for change in changes.models)


def side_named(path: ModelPath, side: Side, *, is_compared: bool) -> str:
    """The model with its side, where there are two."""
    return f"{path} ({side})" if is_compared else path


# An outline of a model, seen without running it: enough to recognise a model that was renamed.


class ModelInput(msgspec.Struct, frozen=True):
    """An input of a model; a dimension that the model leaves open is None. `symbols` are the names
    of its dimensions, '' for one without; an input that is not `is_ranked` leaves open how many
    dimensions it has. `dtype` is NumPy's name of its type, '' where it is no tensor. One that
    `is_several` has the dimensions of the tensors in it, and each its own where they are open."""

    name: str
    dimensions: tuple[int | None, ...]
    symbols: tuple[str, ...] = ()
    is_ranked: bool = True
    dtype: str = ""
    is_several: bool = False

    def symbol(self, axis: int) -> str:
        """The name of an open dimension, or ''."""
        return self.symbols[axis] if axis < len(self.symbols) else ""


class ModelOutline(msgspec.Struct, frozen=True, kw_only=True):
    """`parts` counts the operators and the shapes of the weights. `seeded` are the kinds of
    operators whose random numbers begin at a seed of the model's, wherever in it they stand. Each
    of the `layers` has its operator, the shapes of its weights and its attributes, in words."""

    graph_digest: str
    inputs: tuple[ModelInput, ...]
    parts: dict[str, int]
    seeded: tuple[str, ...] = ()
    layers: dict[str, dict[str, str]] = {}


# The name under which a model is gated: its path, and its profile where it has some.
# `models/encoder.onnx@long` is unmistakable: no path of a model ends otherwise than in `.onnx`,
# and no profile's name does. `models/encoder.onnx@long (onnxruntime of uv.lock)` is the same model
# under the packages of that lock file, at base and head.

_SEPARATOR = "@"
_ENDING = ".onnx"
_UPGRADE = re.compile(r"(.+) \([a-z][a-z0-9_]* of [^()]+\)")


def gated_name(path: ModelPath, profile: str) -> ModelPath:
    """The name of a model in one of its profiles; its path where `profile` is ''."""
    return f"{path}{_SEPARATOR}{profile}" if profile else path


def upgraded_name(name: ModelPath, runtime: str, lock: str) -> ModelPath:
    """The name of a model that is gated for an upgrade of a runtime in a lock file."""
    return f"{name} ({runtime} of {lock.replace('(', '_').replace(')', '_')})"


def without_upgrade(name: ModelPath) -> ModelPath:
    """The name of the model itself."""
    found = None if name.casefold().endswith(_ENDING) else _UPGRADE.fullmatch(name)
    return found[1] if found else name


def path_of(name: ModelPath) -> ModelPath:
    """The path of the file."""
    return _parts(name)[0]


def profile_of(name: ModelPath) -> str:
    """The name of the profile, '' where there is none."""
    return _parts(name)[1]


def _parts(name: ModelPath) -> tuple[ModelPath, str]:
    name = without_upgrade(name)
    path, separator, profile = name.rpartition(_SEPARATOR)
    if not separator or not path.casefold().endswith(_ENDING) or name.casefold().endswith(_ENDING):
        return name, ""
    return path, profile
