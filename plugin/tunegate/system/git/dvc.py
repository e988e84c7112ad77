"""What DVC keeps in place of git: the outputs of pipelines that `dvc.lock` names, and the caches
where their bytes lie."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec

from tunegate.regular_files import opened_inside
from tunegate.system.strict_yaml import YamlProblemError, read_yaml

_LOCK, _PIPELINE = "dvc.lock", "dvc.yaml"
_MD5 = re.compile(r"[0-9a-f]{32}(\.dir)?")
_DIRECTORY = ".dir"
_MAX_CONFIG_BYTES = 64 * 1024
_CONFIG_FILES = ("config.local", "config")
_LAYOUTS = ("files/md5/", "")
"""Since DVC 3.0, and before."""


class StageOutput(msgspec.Struct, frozen=True, kw_only=True):
    """One output of a stage. `digest` is an md5, by the kind that `ContentPointer` has."""

    path: str
    digest: str
    size_bytes: int | None
    digest_kind: Literal["md5", "md5-text"]


class StageOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of all pipelines of a revision. `directories` are those that are one, with their
    digest; `unread` are files or stages that say something else, with what."""

    files: Mapping[str, StageOutput] = {}
    directories: Mapping[str, str] = {}
    unread: Mapping[str, str] = {}


def stage_outputs(paths: Iterable[str], read: Callable[[str], bytes]) -> StageOutputs:
    """Returns the outputs that the lock files among these paths name. `read` gives a file."""
    known = {path for path in paths if posixpath.basename(path) in {_LOCK, _PIPELINE}}
    files: dict[str, StageOutput] = {}
    directories: dict[str, str] = {}
    unread: dict[str, str] = {}
    for lock in sorted(path for path in known if posixpath.basename(path) == _LOCK):
        try:
            stages = _stages(_parsed(read(lock)))
            pipeline = posixpath.join(posixpath.dirname(lock), _PIPELINE)
            written = _stages(_parsed(read(pipeline))) if pipeline in known else {}
        except (YamlProblemError, UnicodeDecodeError) as error:
            unread[lock] = f"cannot be read ({error})"
            continue
        for name, stage in stages.items():
            directory = _working_directory(written.get(name.partition("@")[0]))
            for path, out in _outputs(stage):
                place = _place(lock, directory, path)
                if place is None:
                    unread[f"{lock}: {name}"] = f"the place of its output {path} is not known here"
                elif (found := _output(place, out)) is None:
                    unread[f"{lock}: {name}"] = f"its output {path} has no md5"
                elif found.digest.endswith(_DIRECTORY):
                    directories[place] = found.digest
                else:
                    files[place] = found
    return StageOutputs(files=files, directories=directories, unread=unread)


def outputs_of_file(content: bytes) -> Mapping[str, str]:
    """Returns the outputs of a `.dvc` file, with their digests: files, and directories (`.dir`)."""
    try:
        parsed = _parsed(content)
    except (YamlProblemError, UnicodeDecodeError):
        return {}
    return {path: str(out.get("md5", "")) for path, out in _outputs(parsed)}


def _parsed(content: bytes) -> Any:
    return read_yaml(content.decode())


def _stages(parsed: object) -> dict[str, dict[str, Any]]:
    """The stages; before DVC 2.0 they were the whole lock file."""
    stages = parsed.get("stages", parsed) if isinstance(parsed, dict) else None
    found = stages.items() if isinstance(stages, dict) else ()
    return {str(name): stage for name, stage in found if isinstance(stage, dict)}


def _outputs(stage: object) -> Iterator[tuple[str, dict[str, Any]]]:
    outs = stage.get("outs") if isinstance(stage, dict) else None
    for out in outs if isinstance(outs, list) else ():
        if isinstance(out, dict) and isinstance(out.get("path"), str):
            yield out["path"], out


def _working_directory(stage: Mapping[str, Any] | None) -> str:
    """Returns where the paths of a stage begin, below its lock file. A lock file does not say."""
    if stage is None:
        return "."
    loop = stage.get("do")
    return str((loop if isinstance(loop, dict) else stage).get("wdir", "."))


def _place(lock: str, directory: str, path: str) -> str | None:
    """The path in the repository. None for one outside of it, and for a template of DVC."""
    place = posixpath.normpath(posixpath.join(posixpath.dirname(lock), directory, path))
    is_outside = place.startswith(("../", "/")) or place == ".."
    return None if is_outside or "${" in place or "://" in path else place


def _output(place: str, out: Mapping[str, Any]) -> StageOutput | None:
    digest, size, kind = out.get("md5"), out.get("size"), out.get("hash", "md5-text")
    is_known = isinstance(digest, str) and _MD5.fullmatch(digest) and kind in {"md5", "md5-text"}
    if not is_known or not (size is None or isinstance(size, int)):
        return None
    return StageOutput(path=place, digest=str(digest), size_bytes=size, digest_kind=kind)


# The caches.


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
            if named := _cache_of(root, f"{settings}/{file}"):
                yield root / settings / named, ""
        yield root, f"{settings}/cache"
    for place in _settings_of_machine():
        if named := _cache_of(place, "config"):
            yield place / named, ""


def _settings_of_machine() -> Iterator[Path]:
    own = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    yield Path(os.environ.get("DVC_GLOBAL_CONFIG_DIR") or f"{own}/dvc")
    yield Path(os.environ.get("DVC_SYSTEM_CONFIG_DIR") or "/etc/xdg/dvc")


def _cache_of(root: Path, file: str) -> str:
    """The `dir` of the section `cache`; '' without one. A relative one begins at the file."""
    try:
        opened = opened_inside(root, file)
    except OSError:
        return ""
    if opened is None:
        return ""
    with opened:
        text = opened.read(_MAX_CONFIG_BYTES).decode(errors="replace")
    section, named = "", ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]'\" ")
        elif section == "cache" and not line.startswith("#"):
            key, has_value, value = line.partition("=")
            if has_value and key.strip() == "dir":
                named = value.strip().strip("'\"")
    return named
