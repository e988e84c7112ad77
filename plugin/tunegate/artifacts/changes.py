"""The result of detection: the configured models that a change touches, how it touches them, and
how the head's configuration differs from the one that judges."""

import re
from typing import Literal

import msgspec

ModelPath = str
Side = Literal["base", "head"]
ModelSide = tuple[ModelPath, Side]
SIDES: tuple[Side, Side] = ("base", "head")
Effect = Literal["loosened", "tightened", "changed"]


class ModelPin(msgspec.Struct, frozen=True, kw_only=True):
    """The content behind an address when it was read: `version` in the registry's words, '' without
    one, and the SHA-256 of the measured content."""

    address: str
    version: str
    sha256: str


class Revisions(msgspec.Struct, frozen=True, kw_only=True):
    """Full commit ids. `base` is None if there is nothing to compare with. `reason` tells the
    report how the two were chosen. `release` is the base's tag if everything since a release is
    judged together. `policy` is the commit whose configuration judges, if that is not the base.
    `pins` are the sources of base and head outside a repository; the ids are then digests of
    content."""

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
        """The base, if the judging commit is newer: rules that the head took from that commit are
        not its own."""
        return self.base if self.policy and not self.release else None


class ExternalFile(msgspec.Struct, frozen=True):
    """A file of tensor data beside the model. `digest` identifies its content."""

    path: str
    digest: str


class ModelVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one revision. `content_digest` identifies the bytes (for LFS and DVC it comes
    from the pointer, without a download). A `link` is a symbolic link and is not followed. A file
    stored in git and by DVC (`both`) has no single content. `graph_digest` is the SHA-256 of the
    graph without tensor data, None if the bytes are not at hand, '' if they are no ONNX file."""

    revision: str
    path: ModelPath
    content_digest: str
    graph_digest: str | None
    storage: Literal["git", "lfs", "dvc", "both", "link"]
    size_bytes: int
    external: tuple[ExternalFile, ...] = ()

    @property
    def contents(self) -> tuple[str, ...]:
        """The digests of the model and of its data files: equal for equal bytes in any place."""
        return (self.content_digest, *(file.digest for file in self.external))


class Ancestor(msgspec.Struct, frozen=True, kw_only=True):
    """An older base, `commits` before the base revision. No version in between can be compiled."""

    commits: int
    reason: str


class LayerChange(msgspec.Struct, frozen=True):
    """A layer that differs between base and head, and how: its operator, weight shapes and
    attributes."""

    name: str
    change: str


class ModelChange(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of one configured model between base and head. `change` is set for `modified`:
    weights only, the graph, the configuration, or unknown (treated as structural). An `unreadable`
    model turned into something that is no file, which is an error. An `upgraded` one is the head's
    on both sides, with the packages of a lock file at base and head. `layers` are the first that
    changed, `more_layers` counts the rest."""

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

    @property
    def compiled_sides(self) -> dict[Side, ModelVersion]:
        """The sides to compile: none for a model that was deleted, only renamed, or changed only in
        its packages."""
        if self.kind in {"deleted", "renamed", "unreadable", "upgraded"}:
            return {}
        sides: dict[Side, ModelVersion] = {}
        if self.base is not None:
            sides["base"] = self.base
        if self.head is not None:
            sides["head"] = self.head
        return sides

    @property
    def is_measured(self) -> bool:
        """True if the model's head is built and measured."""
        return self.kind == "upgraded" or "head" in self.compiled_sides


class PolicyChange(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `key` is the key in the file; `old` and `new` are its values at base and
    head. `counts` tells whether this verdict already used the new value. `model` is a path, or an
    entry's glob if several of its models are concerned."""

    key: str
    old: str
    new: str
    effect: Effect
    counts: Literal["now", "once merged"]
    model: str = ""
    target: str = ""

    @property
    def weakens(self) -> bool:
        """True if someone must agree to the change: it is not stricter than before."""
        return self.effect != "tightened"


class ChangeSet(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `changes.json`. `unchanged` are configured models that the change does not
    touch, `uncovered` the head's model files without a rule."""

    schema: Literal[1] = 1
    revisions: Revisions
    models: tuple[ModelChange, ...]
    unchanged: tuple[ModelPath, ...] = ()
    notes: tuple[str, ...] = ()
    policy_changes: tuple[PolicyChange, ...] = ()
    uncovered: tuple[ModelPath, ...] = ()


def has_base(changes: ChangeSet) -> bool:
    """Returns whether anything is compared. Warmed and new models have a head alone."""
    return any(change.base is not None for change in changes.models)


def side_named(path: ModelPath, side: Side, *, is_compared: bool) -> str:
    """Returns the model with its side, if there are two."""
    return f"{path} ({side})" if is_compared else path


# The outline of a model, without running it: enough to recognise a renamed model.


class ModelInput(msgspec.Struct, frozen=True):
    """An input of a model. An open dimension is None. `symbols` are the names of its dimensions, ''
    without one. If not `is_ranked`, the number of dimensions is open. `dtype` is NumPy's name of
    its type, '' if it is no tensor. An input that `is_several` is a sequence; the dimensions are
    those of its tensors, and each tensor may have its own where they are open."""

    name: str
    dimensions: tuple[int | None, ...]
    symbols: tuple[str, ...] = ()
    is_ranked: bool = True
    dtype: str = ""
    is_several: bool = False

    def symbol(self, axis: int) -> str:
        """Returns the name of an open dimension, or ''."""
        return self.symbols[axis] if axis < len(self.symbols) else ""


class ModelOutline(msgspec.Struct, frozen=True, kw_only=True):
    """`parts` counts the operators and the shapes of the weights. `seeded` are the kinds of
    operators that draw random numbers from a seed in the model, `choosing` those that choose what
    to compute by numbers of the inputs. Each of the `layers` has its operator, weight shapes and
    attributes, in words."""

    graph_digest: str
    inputs: tuple[ModelInput, ...]
    parts: dict[str, int]
    seeded: tuple[str, ...] = ()
    choosing: tuple[str, ...] = ()
    layers: dict[str, dict[str, str]] = {}


# The name under which a model is gated: its path, with its profile if it has some.
#
# `models/encoder.onnx@long` is unambiguous: paths of models end in `.onnx`, and profile names never
# do. `models/encoder.onnx@long (onnxruntime of uv.lock)` is the same model under the packages of
# that lock file, at base and head.

_SEPARATOR = "@"
_ENDING = ".onnx"
_UPGRADE = re.compile(r"(.+) \([a-z][a-z0-9_]* of [^()]+\)")


def gated_name(path: ModelPath, profile: str) -> ModelPath:
    """Returns the name of a model in a profile, its path if `profile` is ''."""
    return f"{path}{_SEPARATOR}{profile}" if profile else path


def upgraded_name(name: ModelPath, runtime: str, lock: str) -> ModelPath:
    """Returns the name of a model gated for an upgrade of a runtime in a lock file."""
    return f"{name} ({runtime} of {lock.replace('(', '_').replace(')', '_')})"


def without_upgrade(name: ModelPath) -> ModelPath:
    """Returns the name of the model itself."""
    match = None if name.casefold().endswith(_ENDING) else _UPGRADE.fullmatch(name)
    return match[1] if match else name


def path_of(name: ModelPath) -> ModelPath:
    """Returns the path of the file."""
    return _parts(name)[0]


def profile_of(name: ModelPath) -> str:
    """Returns the name of the profile, '' without one."""
    return _parts(name)[1]


def _parts(name: ModelPath) -> tuple[ModelPath, str]:
    name = without_upgrade(name)
    path, separator, profile = name.rpartition(_SEPARATOR)
    if not separator or not path.casefold().endswith(_ENDING) or name.casefold().endswith(_ENDING):
        return name, ""
    return path, profile
