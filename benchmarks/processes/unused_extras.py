"""Measures what the extras cost those who do not use them.

    python -m benchmarks.processes.unused_extras [--before COMMIT] [--runs 15]

Installs the core, then each extra beside it, from this checkout, and the core of an older commit.
Prints the size of each installation, and the processor time of `tunegate --help` and of a
`tunegate run` that has nothing to do, in turn. Needs a package index.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.small_onnx import conv_model, save

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading, row

HERE = Path(__file__).resolve().parents[2]
EXTRAS = ("history", "deploy", "tuners", "upgrades", "study", "exchange", "whole_model", "ci_hosts")
LINES = {"help": ["--help"], "nothing to do": ["run", "--base", "HEAD~1"]}
CONFIG = """\
models: [{path: "*.onnx"}]
targets: [{name: cpu, runtime: onnxruntime, threads: 1}]
"""


def main() -> None:
    options = command_line(__doc__, before="", runs=15)
    with scratch_folder() as folder:
        environments = {}
        if options.before:
            older = folder / "older"
            older.mkdir()
            archive = _git("archive", options.before, cwd=HERE)
            subprocess.run(["tar", "-x", "-C", older], input=archive, check=True)
            environments[f"core before ({options.before[:8]})"] = _installed(folder / "a", [older])
        environments["core"] = _installed(folder / "b", [HERE])
        sizes = {name: _megabytes(at) for name, at in environments.items()}
        everything = _installed(folder / "c", [HERE])
        last = _megabytes(everything)
        for extra in EXTRAS:
            _install(everything, [HERE / "plugin" / "extras" / extra])
            size = _megabytes(everything)
            sizes[f"and `{extra.replace('_', '-')}`"] = size - last
            last = size
        environments["core and all of these"] = everything
        sizes["core and all of these"] = last
        times = _times(environments, _repository(folder / "repository"), options.runs)
    heading("installed | MB | `--help`, s | `run` with nothing to do, s")
    for name, size in sizes.items():
        seconds = [f"{times[name, line]:.3f}" if name in environments else "" for line in LINES]
        row(name, f"{size:.2f}" if name not in environments else f"{size:.0f}", *seconds)


def _installed(at: Path, sources: Sequence[Path]) -> Path:
    subprocess.run([_uv(), "venv", "-q", "--python", sys.executable, at], check=True)
    _install(at, sources)
    return at


def _install(at: Path, sources: Sequence[Path]) -> None:
    line = ["pip", "install", "-q", "--compile-bytecode", "--python", str(at / "bin/python")]
    subprocess.run([_uv(), *line, *map(str, sources)], check=True)


def _uv() -> Path:
    return Path(sys.executable).with_name("uv")


def _megabytes(environment: Path) -> float:
    """Returns the size of all packages and their programs, without the bytecode that Python makes
    of them."""
    files = (each for each in environment.rglob("*") if each.is_file() and not each.is_symlink())
    return sum(each.stat().st_size for each in files if each.suffix != ".pyc") / 1e6


def _repository(at: Path) -> Path:
    """Returns a repository whose last commit changes no model."""
    at.mkdir()
    save(conv_model(), at / "m.onnx")
    (at / "tunegate.yaml").write_text(CONFIG)
    (at / ".gitignore").write_text(".tunegate/\n")
    _git("init", "-q", "-b", "main", cwd=at)
    for text in ("first", "second"):
        (at / "page.txt").write_text(text)
        _git("add", ".", cwd=at)
        _git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", text, cwd=at)
    return at


def _git(*line: str, cwd: Path) -> bytes:
    return subprocess.run(["git", *line], cwd=cwd, stdout=subprocess.PIPE, check=True).stdout


def _times(
    environments: dict[str, Path], repository: Path, runs: int
) -> dict[tuple[str, str], float]:
    asked = [(name, line) for line in LINES for name in environments]
    found: dict[tuple[str, str], list[float]] = {each: [] for each in asked}
    for _ in range(1 + runs):
        for name, line in asked:
            used = _processor_seconds(
                [environments[name] / "bin/tunegate", *LINES[line]], repository
            )
            found[name, line].append(used)
    return {each: statistics.median(seconds[1:]) for each, seconds in found.items()}


def _processor_seconds(command: Sequence[Path | str], repository: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    home = {"HOME": str(repository.parent), "XDG_CACHE_HOME": str(repository.parent / "cache")}
    subprocess.run(
        command, cwd=repository, env={**os.environ, **home}, capture_output=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
