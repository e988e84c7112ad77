"""Files that DVC keeps instead of git: the outputs of pipelines that `dvc.lock` names, those that
`.dvc` files name, and the caches where their bytes lie."""

from __future__ import annotations

import hashlib
import itertools
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import RevisionError
from tunegate.regular_files import opened_inside
from tunegate.system.strict_yaml import YamlProblemError, read_yaml

_LOCK, _PIPELINE = "dvc.lock", "dvc.yaml"
_MD5 = re.compile(r"[0-9a-f]{32}(\.dir)?")
_MD5_OF_FILE = re.compile(r"[0-9a-f]{32}")
_DVC, _DIRECTORY, _MODEL = ".dvc", ".dir", ".onnx"
_OUTPUTS = ("outs", "metrics", "plots")
_TEMPLATE = re.compile(r"\$\{[^{}]*\}")
OF_ONE_FILE = re.compile(
    rb"outs:\n- md5: (?P<md5>[0-9a-f]{32})\n"
    rb"(?:  size: (?P<size>0|[1-9][0-9]{0,18})\n)?"
    rb"(?P<hash>  hash: md5\n)?  path: (?P<path>[\w./-]+)\n"
)
"""A DVC file as DVC writes it for one file. There may be thousands, and YAML is slow to read."""
_ANY, _MAX_TEMPLATES = "${any}", 100
_CONTRADICTION = " or "
_FILES = "files"
_MAX_LISTING_BYTES = 16 * 2**20
"""About 170,000 files of one directory."""
_MAX_LISTINGS_BYTES = 4 * _MAX_LISTING_BYTES
"""Of all directories: thousands may be one listing."""
_MAX_YAML_BYTES = 8 * 2**20
"""The most YAML of one revision: a MiB takes some ten seconds to read."""
_MAX_CONFIG_BYTES = 64 * 1024
_CONFIG_FILES = ("config.local", "config")
_LAYOUTS = ("files/md5/", "")
"""Since DVC 3.0, and before."""


class StageOutput(msgspec.Struct, frozen=True, kw_only=True):
    """A file that DVC keeps: an output, or in one that is a directory. `digest` is an md5, by the
    kind that `ContentPointer` has."""

    path: str
    digest: str
    size_bytes: int | None
    digest_kind: Literal["md5", "md5-text"]

    @property
    def is_contradicted(self) -> bool:
        """Returns whether stages or DVC files name several digests for this path."""
        return _CONTRADICTION in self.digest


class StageOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of all pipelines of a revision, and what is in directories that DVC keeps.
    `directories` are those whose listing is not here, with their digest; `unread` are files or
    stages that say something else, with what."""

    files: Mapping[str, StageOutput] = {}
    directories: Mapping[str, str] = {}
    unread: Mapping[str, str] = {}

    def unlisted_above(self, path: str) -> str:
        """Returns the directory without a listing that the path lies in; '' without one."""
        above = map(str, PurePosixPath(path).parents)
        return next((each for each in above if each in self.directories), "")


def is_dvc_file(path: str) -> bool:
    """Returns whether the file is one of DVC's own, whatever the outputs that it names."""
    return path.casefold().endswith(_DVC)


def is_lock(path: str) -> bool:
    """Returns whether the file names the outputs of a pipeline."""
    return posixpath.basename(path) == _LOCK


def is_of_pipeline(path: str) -> bool:
    """Returns whether the file declares the outputs of a pipeline, or names them."""
    return posixpath.basename(path) in {_LOCK, _PIPELINE}


def stage_outputs(
    paths: Iterable[str],
    read: Callable[[str], bytes | None],
    listing: Callable[[str, str], bytes | None] = lambda _path, _digest: None,
) -> StageOutputs:
    """Returns what the lock files and DVC files among these paths name, without the file that a DVC
    file itself is named after. `read` gives a file, None for one that is too long, and `listing`
    the content of a directory by its path and digest, where it is here. Raises RevisionError for
    more YAML than can be read."""
    listed_paths, yaml = set(paths), _YamlReader()
    outputs: dict[str, StageOutput] = {}
    unread: dict[str, str] = {}
    in_locks = (
        each
        for lock in sorted(filter(is_lock, listed_paths))
        for each in _in_lock(lock, listed_paths, read, yaml)
    )
    dvc_files = sorted(filter(is_dvc_file, listed_paths))
    for who, outputs_or_problem in itertools.chain(
        in_locks, *(_in_dvc_file(path, read(path), yaml) for path in dvc_files)
    ):
        if isinstance(outputs_or_problem, str):
            unread[who] = outputs_or_problem
        else:
            _add(outputs_or_problem, outputs)
    directories = {path: out for path, out in outputs.items() if out.digest.endswith(_DIRECTORY)}
    files = {path: out for path, out in outputs.items() if path not in directories}
    opaque: dict[str, str] = {}
    left_bytes = _MAX_LISTINGS_BYTES
    for path, entry in directories.items():
        content = listing(path, entry.digest) if left_bytes > 0 else None
        left_bytes -= len(content or b"")
        inside = _files_in(entry, content)
        if inside is None:
            opaque[path] = entry.digest
        else:
            _add(inside, files)
    return StageOutputs(files=files, directories=opaque, unread=unread)


_Outputs = dict[str, StageOutput]
"""Outputs by their path."""


def _add(outputs: _Outputs, others: _Outputs) -> None:
    """Adds outputs. DVC refuses a path that two stages or files keep; what is named twice with two
    digests stands for neither."""
    for path, output in outputs.items():
        other = others.get(path, output)
        if output.digest in other.digest:
            others[path] = other
        else:
            both = f"{other.digest}{_CONTRADICTION}{output.digest}"
            others[path] = msgspec.structs.replace(other, digest=both)


def _in_lock(
    lock: str, paths: Collection[str], read: Callable[[str], bytes | None], yaml: _YamlReader
) -> Iterator[tuple[str, _Outputs | str]]:
    """Yields what each stage of a lock file keeps, or why that is not read, under its name. DVC
    takes of it what the pipeline declares; the rest, of stages that were removed, stays there."""
    pipeline = posixpath.join(posixpath.dirname(lock), _PIPELINE)
    if pipeline not in paths:
        yield lock, f"there is no {_PIPELINE} beside it"
        return
    subject = ""
    try:
        stages = _stages(yaml.parse(read(lock)))
        subject = f"{_PIPELINE} beside it "
        stages_of_file = _stages(yaml.parse(read(pipeline)))
    except (YamlProblemError, UnicodeDecodeError) as error:
        yield lock, f"{subject}cannot be read ({error})"
        return
    outputs: dict[str, tuple[set[str], set[str]]] = {}
    for name, stage in stages.items():
        own = name if name in stages_of_file else name.partition("@")[0]
        declaration = stages_of_file.get(own, {})
        loop = declaration.get("do")
        declaration = loop if isinstance(loop, dict) else declaration
        directory = str(declaration.get("wdir", "."))
        if own not in outputs:  # a loop has thousands of stages
            outputs[own] = _declared_outputs(declaration)
        names = outputs[own]
        for path, out in _outputs(stage):
            if not _is_declared(posixpath.normpath(path), *names):
                continue
            place = _place(lock, directory, path)
            if place is None or "${" in place:
                yield f"{lock}: {name}", f"the place of its output {path} is not known here"
            else:
                kept_files = _outputs_of(place, out)
                why = f"its output {path} has no md5"
                yield f"{lock}: {name}", why if kept_files is None else kept_files


def _in_dvc_file(
    dvc_file: str, content: bytes | None, yaml: _YamlReader
) -> Iterator[tuple[str, _Outputs | str]]:
    """Yields what a DVC file keeps beside the file that it is named after, or why that is not read,
    under its path."""
    own = dvc_file[: -len(_DVC)]
    usual = OF_ONE_FILE.fullmatch(content or b"")
    if usual is not None and usual["path"].decode(errors="replace") == posixpath.basename(own):
        return
    try:
        document = yaml.parse(content)
    except (YamlProblemError, UnicodeDecodeError) as error:
        yield f"{dvc_file}: {own}", f"its DVC file cannot be read ({error})"
        return
    directory = str(document.get("wdir", ".")) if isinstance(document, dict) else "."
    for path, out in _outputs(document):
        place = _place(dvc_file, directory, path)
        # Other hashes mark a directory in the same way.
        is_directory = any(str(value).endswith(_DIRECTORY) for value in out.values())
        is_directory = is_directory or _FILES in out
        if place is None or (place == own and not is_directory):
            continue
        kept_files = _outputs_of(place, out)
        if kept_files is not None:
            yield f"{dvc_file}: {place}", kept_files
        elif is_directory or place.casefold().endswith(_MODEL):
            what = "a directory" if is_directory else "a model"
            yield f"{dvc_file}: {place}", f"{what} without md5"


def _outputs_of(place: str, out: Mapping[str, Any]) -> _Outputs | None:
    """Returns an output by its path: a file, a directory by the digest of its listing, or the files
    of one whose listing is in the output itself, as for remotes that keep versions. None for
    another hash than md5."""
    if _FILES not in out:
        output = _output(place, out)
        return None if output is None else {place: output}
    directory = StageOutput(path=place, digest="", size_bytes=None, digest_kind="md5")
    try:
        return _files_below(directory, msgspec.convert(out[_FILES], list[_Entry]))
    except msgspec.ValidationError:
        return None


def _files_in(directory: StageOutput, listing: bytes | None) -> _Outputs | None:
    """The files of a directory. None for a listing that is missing, or is not what the digest says,
    or names a file elsewhere."""
    if listing is None:
        return None
    digest = hashlib.md5(listing, usedforsecurity=False).hexdigest()
    if f"{digest}{_DIRECTORY}" != directory.digest:
        return None
    try:
        return _files_below(directory, msgspec.json.decode(listing, type=list[_Entry]))
    except NOT_JSON:
        return None


def _files_below(directory: StageOutput, entries: Iterable[_Entry]) -> _Outputs | None:
    files: _Outputs = {}
    for entry in entries:
        path = posixpath.normpath(posixpath.join(directory.path, entry.relpath))
        if not path.startswith(f"{directory.path}/") or not _MD5_OF_FILE.fullmatch(entry.md5):
            return None
        if path in files and files[path].digest != entry.md5:
            return None
        files[path] = msgspec.structs.replace(
            directory, path=path, digest=entry.md5, size_bytes=None
        )
    return files


class _Entry(msgspec.Struct, frozen=True):
    """A line of a listing."""

    md5: str
    relpath: str


class _YamlReader:
    """Reads the files of one revision, of which a change may bring any number."""

    def __init__(self) -> None:
        self._bytes = 0

    def parse(self, content: bytes | None) -> Any:
        if content is None:
            raise YamlProblemError("it is too long")
        self._bytes += len(content)
        if self._bytes > _MAX_YAML_BYTES:
            raise RevisionError(
                f"the files of DVC have over {_MAX_YAML_BYTES >> 20} MiB together, besides those "
                "that dvc add writes for one file: they take minutes to read. Commit fewer."
            )
        return read_yaml(content.decode())


def _stages(document: object) -> dict[str, dict[str, Any]]:
    """The stages; before DVC 2.0 they were the whole lock file."""
    stages = document.get("stages", document) if isinstance(document, dict) else None
    pairs = stages.items() if isinstance(stages, dict) else ()
    return {str(name): stage for name, stage in pairs if isinstance(stage, dict)}


def _outputs(stage: object) -> Iterator[tuple[str, dict[str, Any]]]:
    outs = stage.get("outs") if isinstance(stage, dict) else None
    for out in outs if isinstance(outs, list) else ():
        if isinstance(out, dict) and isinstance(out.get("path"), str):
            yield out["path"], out


def _declared_outputs(stage: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """Returns the paths of a pipeline's stage, each a text or the one key of a mapping, and those
    with templates: any, where there are more than anybody writes."""
    entries = (each for key in _OUTPUTS if isinstance(stage.get(key), list) for each in stage[key])
    names = (each if isinstance(each, dict) else [each] for each in entries)
    paths = {_normal(str(name)) for each in names for name in each}
    templates = {path for path in paths if _TEMPLATE.search(path)}
    return paths - templates, templates if len(templates) <= _MAX_TEMPLATES else {_ANY}


def _normal(path: str) -> str:
    """Returns the normal form of a path. `..` after a template may lead anywhere below."""
    template = _TEMPLATE.search(path)
    may_climb = template is not None and ".." in path[template.start() :]
    return _ANY if may_climb else posixpath.normpath(path)


def _is_declared(path: str, plain: Collection[str], templates: Collection[str]) -> bool:
    return path in plain or any(_may_become(template, path) for template in templates)


def _may_become(pattern: str, path: str) -> bool:
    """Returns whether a declared path may be this one: its templates may become any text."""
    first, *others = _TEMPLATE.split(pattern)
    if not others:
        return pattern == path
    *middle, last = others
    place = len(first) if path.startswith(first) else -1
    for piece in middle:
        match_at = path.find(piece, place) if place >= 0 else -1
        place = match_at + len(piece) if match_at >= 0 else -1
    return 0 <= place <= len(path) - len(last) and path.endswith(last)


def _place(lock: str, directory: str, path: str) -> str | None:
    """The path in the repository. None for one outside of it."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(lock), directory, path))
    is_outside = place.startswith(("../", "/")) or place == ".."
    return None if is_outside or "://" in path else place


def _output(place: str, out: Mapping[str, Any]) -> StageOutput | None:
    digest, size, kind = out.get("md5"), out.get("size"), out.get("hash", "md5-text")
    is_known = isinstance(digest, str) and _MD5.fullmatch(digest) and kind in {"md5", "md5-text"}
    if not is_known or not (size is None or isinstance(size, int)):
        return None
    return StageOutput(path=place, digest=str(digest), size_bytes=size, digest_kind=kind)


# The caches.


def cached_listing(root: Path, path: str, digest: str) -> bytes | None:
    """Returns the listing of a directory; None where no cache has it, or it is too long."""
    for directory, place in cached_places(root, path, digest):
        file = opened_inside(directory, place) if directory.is_dir() else None
        if file is not None:
            with file:
                content = file.read(_MAX_LISTING_BYTES + 1)
            return content if len(content) <= _MAX_LISTING_BYTES else None
    return None


def cached_places(root: Path, path: str, digest: str) -> Iterator[tuple[Path, str]]:
    """Yields where a file's bytes may lie: a directory, and a path below it that leads over no
    link. DVC may be set up in any directory above the file, and its configuration may name a cache
    anywhere: what is read there counts only with the digest that the commit names."""
    name = f"{digest[:2]}/{digest[2:]}"
    for directory, below in _caches(root, path):
        for layout in _LAYOUTS:
            yield directory, posixpath.join(below, f"{layout}{name}")


def _caches(root: Path, path: str) -> Iterator[tuple[Path, str]]:
    for parent in PurePosixPath(path).parents:
        settings = str(parent / ".dvc")
        for file in _CONFIG_FILES:
            if cache := _cache_of(root, f"{settings}/{file}"):
                yield root / settings / cache, ""
        yield root, f"{settings}/cache"
    for place in _settings_of_machine():
        if cache := _cache_of(place, "config"):
            yield place / cache, ""


def _settings_of_machine() -> Iterator[Path]:
    # A home that is not known stays `~`, in the checkout, whose settings are read as well.
    own = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    yield Path(os.environ.get("DVC_GLOBAL_CONFIG_DIR") or f"{own}/dvc")
    yield Path(os.environ.get("DVC_SYSTEM_CONFIG_DIR") or "/etc/xdg/dvc")


def _cache_of(root: Path, file: str) -> str:
    """The `dir` of the section `cache`; '' without one. A relative one begins at the file."""
    try:
        config = opened_inside(root, file)
    except OSError:
        return ""
    if config is None:
        return ""
    with config:
        text = config.read(_MAX_CONFIG_BYTES).decode(errors="replace")
    section, cache = "", ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]'\" ")
        elif section == "cache" and not line.startswith("#"):
            key, has_value, value = line.partition("=")
            if has_value and key.strip() == "dir":
                cache = value.strip().strip("'\"")
    return cache
