"""Finds the ONNX files of a working tree, their inputs, and likely sizes of open dimensions."""

import os
import posixpath
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
import onnx

from tunegate.artifacts.changes import ModelInput
from tunegate.artifacts.inputs import DrawnInput, InputRule
from tunegate.config import Config
from tunegate.errors import ModelError, NoOnnxError, UnreadModelError
from tunegate.models.graph import custom_operators
from tunegate.models.model_inputs import graph_inputs
from tunegate.models.size_evidence import BESIDE, MAX_BESIDE_BYTES, Evidence, evidence_of
from tunegate.models.sizes import GuessedSize, guessed_sizes
from tunegate.regular_files import opened_inside
from tunegate.review.model_settings import matching_paths
from tunegate.system.git.dvc import is_dvc_file, is_lock
from tunegate.system.git.process import GitProcess
from tunegate.system.git.repository import GitRepository
from tunegate.system.onnx_scan import MAX_MODEL_BYTES, parsed_model

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_ENDING, _DVC = ".onnx", ".dvc"
_NOT_HERE, _NOT_PULLED = "not in the working tree", "kept by DVC; dvc pull shows its inputs"


class ModelTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A model as ONNX Runtime ran it. `tried` are the sizes, one per line; `inputs` is what it ran
    on; `rules` are those to write to the configuration. `note` says what is wrong with the
    choice."""

    tried: tuple[str, ...] = ()
    inputs: tuple[DrawnInput, ...] = ()
    rules: dict[str, InputRule] = {}
    note: str = ""
    seconds: float = 0.0


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model file. If `inputs` is None `note` says why they are unknown; `is_broken` means a run
    will reject the file. `custom_operators` come from libraries that ONNX Runtime does not bring.
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
    only: Sequence[str] | None = None,
    with_guesses: bool = False,
) -> tuple[FoundModel, ...]:
    """Returns every `.onnx` file that git tracks or would add, or that DVC keeps, by path, or only
    those in `only`. With a configuration only the models that it gates are read. Raises
    RevisionError."""
    git = GitProcess(repository)
    committed = _committed_paths(git)
    outputs = _outputs_of_stages(git, committed)
    models = _model_paths(git, outputs) if only is None else only
    in_dvc = {*_of_dvc_files(committed), *outputs}
    all_models = (
        _read_model(git.root, path, is_committed=path in committed, with_guesses=with_guesses)
        for path in (models if config is None else matching_paths(config, models))
    )
    return tuple(_as_kept(model) if model.path in in_dvc else model for model in all_models)


def model_paths(repository: Path) -> tuple[str, ...]:
    """Returns the paths of all models, sorted. Raises RevisionError."""
    git = GitProcess(repository)
    return _model_paths(git, _outputs_of_stages(git, _committed_paths(git)))


def _model_paths(git: GitProcess, outputs: Collection[str]) -> tuple[str, ...]:
    files = _list_paths(git, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    paths = {*files, *_of_dvc_files(files), *outputs}
    return tuple(sorted(path for path in paths if path.casefold().endswith(_ENDING)))


def _committed_paths(git: GitProcess) -> set[str]:
    return {*_list_paths(git, "ls-tree", "-r", "-z", "--name-only", "--full-tree", "HEAD")}


def _of_dvc_files(files: Collection[str]) -> set[str]:
    """Returns the models with a DVC file of their own among these files."""
    return {path.removesuffix(_DVC) for path in files if path.endswith(_DVC)}


def _outputs_of_stages(git: GitProcess, committed: Collection[str]) -> Collection[str]:
    """Returns what DVC keeps of the commit here in other ways."""
    has_any = any(is_dvc_file(path) or is_lock(path) for path in committed)
    return GitRepository(git.root).stage_outputs("HEAD").files.keys() if has_any else ()


def _as_kept(model: FoundModel) -> FoundModel:
    note = _NOT_PULLED if model.note == _NOT_HERE else model.note
    return msgspec.structs.replace(model, is_committed=True, note=note)


def _list_paths(git: GitProcess, *arguments: str) -> list[str]:
    return (git.text(*arguments) or "").split("\0")


def _read_model(root: Path, path: str, *, is_committed: bool, with_guesses: bool) -> FoundModel:
    body, note = _body(root, path)
    if note:
        return FoundModel(path=path, note=note, is_committed=is_committed)
    try:
        model = parsed_model(body)
    except ModelError as error:
        note = "not a readable ONNX file" if isinstance(error, NoOnnxError) else str(error)
        note += "" if isinstance(error, UnreadModelError) else ": export it again"
        return FoundModel(path=path, note=note, is_broken=True, is_committed=is_committed)
    return FoundModel(
        path=path,
        inputs=graph_inputs(model.graph),
        custom_operators=custom_operators(model),
        guesses=guessed_sizes(model, evidence_at(root, path, model)) if with_guesses else (),
        is_committed=is_committed,
    )


def evidence_at(root: Path, path: str, model: onnx.ModelProto) -> Evidence:
    """Returns the evidence for a model's sizes, including the files beside it in the working
    tree."""
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
    """Returns the content, or why it was not read."""
    file = opened_inside(root, path)
    if file is None:
        return b"", "not a file in the working tree" if os.path.lexists(root / path) else _NOT_HERE
    with file:
        if os.fstat(file.fileno()).st_size > MAX_MODEL_BYTES:
            return b"", "too large to look into here"
        body = file.read()
    if body.startswith(_LFS_POINTER):
        return b"", "a Git LFS pointer; git lfs pull shows its inputs"
    return body, ""
