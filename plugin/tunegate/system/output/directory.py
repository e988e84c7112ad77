"""The door to `--out`: whatever is written or removed there is ours, and no other run's.

Nothing of a checkout may lead elsewhere or be taken for ours, so nothing in the directory is a
link, tracked by git, or there before us without our marker.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tunegate.errors import OutputError
from tunegate.regular_files import read_regular, replace
from tunegate.system.git.checkout import first_tracked
from tunegate.system.git.working_tree import working_tree
from tunegate.system.output.owned_directory import (
    WORK,
    held_directory,
    is_marked,
    is_marked_here,
    mark,
    refuse_links,
)

BUILDS = "builds"
STUDY, CELLS = "study", "cells"
"""The directory of a study, and that of its cells inside it."""
_DERIVED = (
    r"bisect\.json|tasks\.json|plan\.json|matrix\.json|measure-matrix\.json|outcome-.*\.json|"
    r"measurements-.*\.json"
)
_PLANNED = rf"changes\.json|{_DERIVED}"
_SIGNED = r"evidence\.(json|cdx\.json)|statement\.json|predicate\.json"
_JUDGED = rf"verdict\.json|report\.md|report\.html|junit\.xml|sarif\.json|ci-.*|{_SIGNED}"
_GATED = rf"warm\.json|measurements\.json|{_JUDGED}"
_PAGES = r"(history|costs)\.html|history\.(csv|jsonl|prom)|study\.(json|md|html)"
_OURS = re.compile(rf"{_PLANNED}|{_GATED}|{_PAGES}|\.gitignore")
_HANDED_OVER = re.compile(_PLANNED)
_FORGOTTEN = {
    "plan": re.compile(rf"{_DERIVED}|{_GATED}"),
    "gate": re.compile(_GATED),
    "verdict": re.compile(_JUDGED),
}
EarlierStep = Literal["plan", "gate", "verdict"]
_OF_THE_DISK = {"lost+found"}


@dataclass(frozen=True)
class OutputDirectory:
    """One that this process may write to, and has for itself."""

    path: Path

    @property
    def workdir(self) -> Path:
        return self.path / WORK

    def forget(self, *, since: EarlierStep) -> None:
        """Removes what this step and the later ones wrote in an earlier run: a gate reads
        every outcome it finds, and who reads a verdict cannot see that the run which
        should have written it failed."""
        for name in _names(self.path):
            if _FORGOTTEN[since].fullmatch(name):
                with _told(self.path / name):
                    (self.path / name).unlink()

    def forget_shard(self, shard: int) -> None:
        """Removes what this measuring shard wrote in an earlier run. Those of others stay."""
        path = self.path / f"measurements-{shard}.json"
        with _told(path):
            path.unlink(missing_ok=True)

    def empty_workdir(self) -> Path:
        """Empties the working directory of what an earlier run left in it, however that ended."""
        with _told(self.workdir):
            if self.workdir.exists():
                shutil.rmtree(self.workdir)
            self.workdir.mkdir()
        return self.workdir

    def keep_logs(self) -> None:
        """Removes all of the working directory but the logs, because
        errors in the report name them."""
        for directory, _, names in os.walk(self.workdir, topdown=False):
            for name in names:
                if not name.endswith(".log"):
                    Path(directory, name).unlink(missing_ok=True)
            with suppress(OSError):  # it holds a log
                Path(directory).rmdir()


def forget_verdict(path: Path, command: str) -> None:
    """Removes the verdict of an earlier run and what renders it, where the directory is there and
    ours; plans, outcomes and measurements took longer, and stay. Raises OutputError, and
    OutputInUseError while another run has it."""
    if is_marked_here(path):
        with opened_output(path, command) as out:
            out.forget(since="verdict")


def shared_output(path: Path) -> Path:
    """The directory for a file that no run reads or writes, while one may be at work there. Raises
    OutputError for a directory that is not ours."""
    _made_ours(path)
    with _told(path):
        _refuse_odd_entries(path)
    return path


@contextmanager
def opened_output(path: Path, command: str) -> Iterator[OutputDirectory]:
    """The directory, made where it is missing, until the command ends. Nothing in it is changed yet
    but for the marker, the lock and a `.gitignore`. Raises OutputError for a directory that is not
    ours, OutputInUseError while another run has it."""
    _made_ours(path)
    with held_directory(path, command):
        with _told(path):
            _refuse_odd_entries(path)
        yield OutputDirectory(path)


def _made_ours(path: Path) -> None:
    with _told(path):
        refuse_links(path)
        _refuse_foreign(path)
        path.mkdir(parents=True, exist_ok=True)
        mark(path)
        replace(path / ".gitignore", b"*\n")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be written ({error.strerror}). Choose another with --out."
        raise OutputError(message) from error


def _names(path: Path) -> Sequence[str]:
    return sorted(each.name for each in path.iterdir() if each.name not in _OF_THE_DISK)


def _refuse_foreign(path: Path) -> None:
    names = _names(path) if path.exists() else ()
    if not names:
        return
    _refuse_tracked(path)
    is_ours = is_marked(path) or all(_is_handed_over(path / name) for name in names)
    if ".git" in names or not is_ours:
        raise OutputError(_cut_off(path, names) or _foreign(path, names))


def _foreign(path: Path, names: Sequence[str]) -> str:
    return (
        f"{path}: not made by tunegate, and not empty ({names[0]}). "
        f"Choose a new directory with --out, or empty this one."
    )


def _cut_off(path: Path, names: Sequence[str]) -> str:
    """Returns what to do about a file of an earlier step that ends too soon; '' where none does.
    Such a download is no reason to doubt the directory."""
    cut = [name for name in names if _HANDED_OVER.fullmatch(name) and _ends_too_soon(path / name)]
    if not cut or not all(name in cut or _is_handed_over(path / name) for name in names):
        return ""
    return f"{path / cut[0]}: cut off or damaged. Fetch it again from the job that wrote it."


def _ends_too_soon(file: Path) -> bool:
    """Returns whether the file begins as one of ours, and is no whole JSON."""
    try:
        text = read_regular(file)
    except OSError:
        return False
    try:
        json.loads(text)
    except ValueError:
        return not text or text.lstrip().startswith(b"{")
    return False


def _refuse_tracked(path: Path) -> None:
    """Refuses a directory in which the checkout brought something, or
    that it brought as a submodule."""
    place = Path(os.path.realpath(path))
    root = working_tree(place.parent)
    if root is None:
        return
    first = first_tracked(root, place)
    if first == "":
        return
    told = "cannot say what it tracks in it" if first is None else f"tracks {first}"
    message = (
        f"{path}: git {told}, so it is no directory for results. "
        f"Remove it from git, or choose another with --out."
    )
    raise OutputError(message)


def _is_handed_over(file: Path) -> bool:
    """Returns whether an earlier step of the pipeline may have written the file, on another
    machine."""
    if file.name == STUDY:
        return _are_cells(file)
    if not _HANDED_OVER.fullmatch(file.name):
        return False
    return _has_schema(file)


def _has_schema(file: Path) -> bool:
    try:
        found = json.loads(read_regular(file))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and ("schema" in found or "include" in found)


def _are_cells(directory: Path) -> bool:
    """Returns whether the directory holds only the cells that shards of a study have left."""
    found = [Path(at, name) for at, _, names in os.walk(directory) for name in names]
    return all(each.parent == directory / CELLS and _has_schema(each) for each in found)


def _refuse_odd_entries(path: Path) -> None:
    """A link, or something else where a file or directory of ours belongs."""
    for name in _names(path):
        wanted = stat.S_ISDIR if name in {WORK, BUILDS} else stat.S_ISREG
        is_ours = name in {WORK, BUILDS} or _OURS.fullmatch(name)
        if is_ours and not wanted(os.lstat(path / name).st_mode):
            raise _odd(path / name)
    for directory, subdirectories, files in os.walk(path / BUILDS):
        for name in (*subdirectories, *files):
            mode = os.lstat(Path(directory, name)).st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise _odd(Path(directory, name))


def _odd(path: Path) -> OutputError:
    what = "a link" if path.is_symlink() else "not of the kind that tunegate writes there"
    return OutputError(f"{path}: {what}. Remove it, or choose another directory with --out.")
