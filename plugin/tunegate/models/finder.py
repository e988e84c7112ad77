"""The ONNX files of a working tree, their inputs, and likely sizes of what these leave open."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from pathlib import Path

import msgspec
import onnx

from tunegate.artifacts.changes import ModelInput
from tunegate.artifacts.inputs import DrawnInput, InputRule
from tunegate.config import Config
from tunegate.errors import ModelError, NoOnnxError
from tunegate.models.model_inputs import graph_inputs
from tunegate.models.size_evidence import BESIDE, MAX_BESIDE_BYTES, Evidence, evidence_of
from tunegate.models.sizes import GuessedSize, guessed_sizes
from tunegate.regular_files import opened_inside
from tunegate.review.model_settings import selected
from tunegate.system.git.process import GitProcess
from tunegate.system.onnx_scan import MAX_MODEL_BYTES, parsed_model

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_ENDING = ".onnx"
_CONTRIB = "ai.onnx.contrib"
"""The domain of onnxruntime-extensions, among those that ONNX itself has."""
_KNOWN_DOMAINS = ("ai.onnx", "com.microsoft", "com.ms.internal", "org.pytorch.aten")


class ModelTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A model as ONNX Runtime ran it: `tried` are the sizes, a line each, `inputs` what it was run
    on, and `rules` those whose values are to be written. `note` says what is wrong with the
    choice."""

    tried: tuple[str, ...] = ()
    inputs: tuple[DrawnInput, ...] = ()
    rules: dict[str, InputRule] = {}
    note: str = ""
    seconds: float = 0.0


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """`note` says why the inputs are not known, where they are None, `is_broken` that a run will
    refuse the file. `custom_operators` are of libraries that ONNX Runtime does not bring.
    `guesses` and `trial` are made for `init` alone."""

    path: str
    inputs: tuple[ModelInput, ...] | None = None
    guesses: tuple[GuessedSize, ...] = ()
    is_committed: bool = True
    note: str = ""
    is_broken: bool = False
    custom_operators: tuple[str, ...] = ()
    trial: ModelTrial = ModelTrial()


def find_models(
    repository: Path,
    config: Config | None = None,
    *,
    listed: Sequence[str] | None = None,
    with_guesses: bool = False,
) -> tuple[FoundModel, ...]:
    """Every `.onnx` file that git tracks, and every one that it would add, by path, or of those
    that are `listed` already; with a configuration those that it gates, and nobody looks into
    others. Raises RevisionError."""
    git = GitProcess(repository)
    models = model_paths(repository) if listed is None else listed
    committed = {*_listed(git, "ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD")}
    return tuple(
        _found(git.root, path, is_committed=path in committed, with_guesses=with_guesses)
        for path in (models if config is None else selected(config, models))
    )


def model_paths(repository: Path) -> tuple[str, ...]:
    """The paths of all of them, in order. Raises RevisionError."""
    git = GitProcess(repository)
    listed = _listed(git, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return tuple(sorted({path for path in listed if path.casefold().endswith(_ENDING)}))


def _listed(git: GitProcess, *arguments: str) -> list[str]:
    return (git.text(*arguments) or "").split("\0")


def _found(root: Path, path: str, *, is_committed: bool, with_guesses: bool) -> FoundModel:
    body, note = _body(root, path)
    if note:
        return FoundModel(path=path, note=note, is_committed=is_committed)
    try:
        model = parsed_model(body)
    except ModelError as error:
        note = "not a readable ONNX file" if isinstance(error, NoOnnxError) else str(error)
        return FoundModel(path=path, note=note, is_broken=True, is_committed=is_committed)
    return FoundModel(
        path=path,
        inputs=graph_inputs(model.graph),
        custom_operators=custom_operators(model),
        guesses=guessed_sizes(model, evidence_at(root, path, model)) if with_guesses else (),
        is_committed=is_committed,
    )


def custom_operators(model: onnx.ModelProto) -> tuple[str, ...]:
    """Returns the operators, like `ai.onnx.contrib:Inverse`, that a library registers: neither ONNX
    nor ONNX Runtime has their domain, and the model has no function of their name."""
    own = {(function.domain, function.name) for function in model.functions}
    graphs = [model.graph.node, *(function.node for function in model.functions)]
    found: set[str] = set()
    while graphs:
        for node in graphs.pop():
            if _is_custom(node.domain) and (node.domain, node.op_type) not in own:
                found.add(f"{node.domain}:{node.op_type}")
            for attribute in node.attribute:
                inner = (
                    (attribute.g, *attribute.graphs)
                    if attribute.HasField("g")
                    else attribute.graphs
                )
                graphs += [graph.node for graph in inner]
    return tuple(sorted(found))


def _is_custom(domain: str) -> bool:
    is_known = not domain or domain.startswith(_KNOWN_DOMAINS)
    return domain == _CONTRIB or not is_known


def evidence_at(root: Path, path: str, model: onnx.ModelProto) -> Evidence:
    """The evidence for the sizes of a model of the working tree, from what lies beside it too."""
    folders = (posixpath.dirname(path), posixpath.dirname(posixpath.dirname(path)))
    beside: dict[str, bytes] = {}
    for folder in dict.fromkeys(folders):
        for name in BESIDE:
            file = opened_inside(root, posixpath.join(folder, name))
            if file is None:
                continue
            with file:
                if os.fstat(file.fileno()).st_size <= MAX_BESIDE_BYTES:
                    beside.setdefault(name, file.read())
    return evidence_of(model, path, beside)


def _body(root: Path, path: str) -> tuple[bytes, str]:
    """The content, or why nobody looked into it."""
    file = opened_inside(root, path)
    if file is None:
        is_there = os.path.lexists(root / path)
        return b"", f"not {'a file ' if is_there else ''}in the working tree"
    with file:
        if os.fstat(file.fileno()).st_size > MAX_MODEL_BYTES:
            return b"", "too large to look into here"
        body = file.read()
    if body.startswith(_LFS_POINTER):
        return b"", "a Git LFS pointer; git lfs pull shows its inputs"
    return body, ""
