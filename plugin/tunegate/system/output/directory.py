"""Guards `--out`: whatever is written or removed there is ours, and no other run's.

A checkout's content must not lead elsewhere or pass for ours. So nothing in the directory may be a
link, be tracked by git, or have been there before us without our marker.
"""

import errno
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

from tunegate.errors import EnvironmentUnfitError, OutputError
from tunegate.regular_files import (
    is_disk_full,
    read_regular,
    replace,
    temporary_directory,
    working_tree,
)
from tunegate.system.git.checkout import first_tracked
from tunegate.system.output import owned_directory
from tunegate.system.output.temporary_folder import remove_abandoned

BUILDS = "builds"
STUDY, CELLS = "study", "cells"
"""The directory of a study, and that of its cells inside it."""
_DERIVED = (
    r"bisect\.json|tasks\.json|plan\.json|matrix\.json|measure-matrix\.json|outcome-.*\.json|"
    r"measurements-.*\.json"
)
_PLANNED = rf"changes\.json|{_DERIVED}"
_SIGNED = r"evidence\.(json|cdx\.json)|statement\.json|predicate\.json|subjects\.sha256"
_JUDGED = rf"verdict\.json|report\.md|report\.html|junit\.xml|sarif\.json|ci-.*|{_SIGNED}"
_GATED = rf"warm\.json|measurements\.json|{_JUDGED}"
_PAGES = r"(history|costs)\.html|history\.(csv|jsonl)|study\.(json|md|html)"
_OURS = re.compile(rf"{_PLANNED}|{_GATED}|{_PAGES}|\.gitignore")
_HANDED_OVER = re.compile(_PLANNED)
_FORGOTTEN = {
    "plan": re.compile(rf"{_DERIVED}|{_GATED}"),
    "gate": re.compile(_GATED),
    "verdict": re.compile(_JUDGED),
}
EarlierStep = Literal["plan", "gate", "verdict"]
_VERDICT = "verdict.json"
_OF_THE_DISK = {"lost+found"}


@dataclass(frozen=True)
class OutputDirectory:
    """A directory that this process may write to, and has for itself."""

    path: Path

    @property
    def workdir(self) -> Path:
        return self.path / owned_directory.WORK

    def forget(self, *, since: EarlierStep) -> None:
        """Removes what this step and the later ones wrote in an earlier run: a gate reads every
        outcome it finds, and a reader of a verdict cannot see that the run which should have
        written it failed."""
        for name in sorted(_names(self.path), key=lambda each: each != _VERDICT):
            if _FORGOTTEN[since].fullmatch(name):
                with _write_errors_named(self.path / name):
                    (self.path / name).unlink()

    def forget_shard(self, shard: int) -> None:
        """Removes what this measuring shard wrote in an earlier run. Others' files stay."""
        path = self.path / f"measurements-{shard}.json"
        with _write_errors_named(path):
            path.unlink(missing_ok=True)

    def empty_workdir(self) -> Path:
        """Empties the working directory of what an earlier run left in it, and TMPDIR of what a
        killed one left."""
        remove_abandoned()
        with _write_errors_named(self.workdir):
            if self.workdir.exists():
                shutil.rmtree(self.workdir)
            self.workdir.mkdir()
        return self.workdir

    def keep_logs(self) -> None:
        """Empties the working directory except for the logs, which errors in the report name."""
        for directory, _, names in os.walk(self.workdir, topdown=False):
            for name in names:
                if not name.endswith(".log"):
                    Path(directory, name).unlink(missing_ok=True)
            with suppress(OSError):  # it holds a log
                Path(directory).rmdir()


def require_room(directory: Path, error: str, *, has_lacked: bool) -> None:
    """Raises EnvironmentUnfitError if a build failed with this error for lack of room, or a disk is
    full now, that of this directory or of temporary files: its runtime may say that the model is
    broken."""
    full = next(filter(is_disk_full, (directory, temporary_directory())), None)
    if has_lacked or full:
        reason = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(full or directory))
        raise EnvironmentUnfitError(error) from reason


def forget_verdict(path: Path, command: str) -> None:
    """Removes an earlier run's verdict and its renderings, if the directory exists and is ours;
    plans, outcomes and measurements took longer, and stay. Raises OutputError, and OutputInUseError
    while another run has it."""
    if owned_directory.is_marked_here(path):
        with opened_output(path, command) as out:
            out.forget(since="verdict")


def shared_output(path: Path) -> Path:
    """Returns the directory for a file that no run reads or writes, so a run may be at work there.
    Raises OutputError if the directory is not ours."""
    _make_ours(path)
    with _write_errors_named(path):
        _refuse_odd_entries(path)
    return path


@contextmanager
def opened_output(path: Path, command: str) -> Iterator[OutputDirectory]:
    """Opens the directory until the command ends, and creates it if necessary. Only the marker, the
    lock and a `.gitignore` are written yet. Raises OutputError if the directory is not ours,
    OutputInUseError while another run has it."""
    _make_ours(path)
    with owned_directory.held_directory(path, command):
        with _write_errors_named(path):
            _refuse_odd_entries(path)
        yield OutputDirectory(path)


@contextmanager
def judged_output(path: Path, command: str) -> Iterator[OutputDirectory]:
    """Opens the directory, as above, for a command that writes a verdict. If it fails after that,
    as on a full disk, its verdict and renderings are removed: it has none."""
    with opened_output(path, command) as out:
        try:
            yield out
        except BaseException:
            with suppress(OSError, OutputError):
                out.forget(since="verdict")
            raise


def _make_ours(path: Path) -> None:
    with _write_errors_named(path):
        owned_directory.refuse_links(path)
        _refuse_foreign(path)
        path.mkdir(parents=True, exist_ok=True)
        owned_directory.mark(path)
        replace(path / ".gitignore", b"*\n")


@contextmanager
def _write_errors_named(path: Path) -> Iterator[None]:
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
    refuse_tracked(path)
    is_ours = owned_directory.is_marked(path) or all(_is_handed_over(path / name) for name in names)
    if ".git" in names or not is_ours:
        raise OutputError(_truncation_advice(path, names) or _foreign(path, names))


def _foreign(path: Path, names: Sequence[str]) -> str:
    return (
        f"{path}: not made by tunegate, and not empty ({names[0]}). "
        f"Choose a new directory with --out, or empty this one."
    )


def _truncation_advice(path: Path, names: Sequence[str]) -> str:
    """Returns what to do about an earlier step's truncated file, '' if there is none. Such a
    download is no reason to doubt the directory."""
    cut = [name for name in names if _HANDED_OVER.fullmatch(name) and _ends_too_soon(path / name)]
    if not cut or not all(name in cut or _is_handed_over(path / name) for name in names):
        return ""
    return f"{path / cut[0]}: cut off or damaged. Fetch it again from the job that wrote it."


def _ends_too_soon(file: Path) -> bool:
    """Returns whether the file begins as one of ours, but is no complete JSON."""
    try:
        text = read_regular(file)
    except OSError:
        return False
    try:
        json.loads(text)
    except ValueError:
        return not text or text.lstrip().startswith(b"{")
    return False


def refuse_tracked(path: Path) -> None:
    """Raises for a directory that contains content of the checkout, or is its submodule."""
    place = Path(os.path.realpath(path))
    root = working_tree(place.parent)
    if root is None:
        return
    first = first_tracked(root, place)
    if first == "":
        return
    problem = "cannot say what it tracks in it" if first is None else f"tracks {first}"
    message = (
        f"{path}: git {problem}, so it cannot hold results. "
        f"Remove it from git, or choose another with --out."
    )
    raise OutputError(message)


def _is_handed_over(file: Path) -> bool:
    """Returns whether an earlier step of the pipeline may have written the file on another
    machine."""
    if file.name == STUDY:
        return _are_cells(file)
    if not _HANDED_OVER.fullmatch(file.name):
        return False
    return _has_schema(file)


def _has_schema(file: Path) -> bool:
    try:
        document = json.loads(read_regular(file))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and ("schema" in document or "include" in document)


def _are_cells(directory: Path) -> bool:
    """Returns whether the directory holds only the cells of a study's shards."""
    files = [Path(at, name) for at, _, names in os.walk(directory) for name in names]
    return all(each.parent == directory / CELLS and _has_schema(each) for each in files)


def _refuse_odd_entries(path: Path) -> None:
    """Raises for a link, or for anything else in place of a file or directory of ours."""
    for name in _names(path):
        is_right_kind = stat.S_ISDIR if name in {owned_directory.WORK, BUILDS} else stat.S_ISREG
        is_ours = name in {owned_directory.WORK, BUILDS} or _OURS.fullmatch(name)
        if is_ours and not is_right_kind(os.lstat(path / name).st_mode):
            raise _not_a_directory_error(path / name)
    for directory, subdirectories, files in os.walk(path / BUILDS):
        for name in (*subdirectories, *files):
            mode = os.lstat(Path(directory, name)).st_mode
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise _not_a_directory_error(Path(directory, name))


def _not_a_directory_error(path: Path) -> OutputError:
    what = "a link" if path.is_symlink() else "not of the kind that tunegate writes there"
    return OutputError(f"{path}: {what}. Remove it, or choose another directory with --out.")
