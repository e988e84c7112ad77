"""Every ONNX file of a folder through `init`, build and check: what is refused, and in which words.

    python -m benchmarks.real_models.collected_files FOLDER [--count 200] [--seed 0]
        [--limit 30] [--only TEXT ...] [--json FILE] [--save collected_files]

Projects that read ONNX carry hundreds of small files, among them onnx/onnx, sonos/tract and
tracel-ai/burn-onnx: clone them into FOLDER. Equal files count once; `--count 0` takes all. Sizes
are those that `init` writes, inputs are drawn. Each file is built for ONNX Runtime and by us with
default schedules, and both are checked, in a process with `--limit` seconds of the processor. With
`--json` each outcome is kept there at once, and what is there is not tried again. Prints a table of
counts, then the sentences of the refusals with their numbers. Names of nodes and values are left
out there, so that equal reasons are one.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.file_case import FileCase, try_file
from benchmarks.kit.operator_case import Outcome
from benchmarks.kit.tables import heading, row
from benchmarks.real_models.operator_cases import keep, kept_outcomes, outcome_in_child
from tunegate.models.finder import FoundModel, find_models
from tunegate.models.size_trials import try_models

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid")
STAGES = {
    "init": "init says that a run will refuse it",
    "sizes": "ONNX Runtime does not run it on what init draws",
    "onnxruntime": "the build for ONNX Runtime is refused",
    "import and build": "ONNX Runtime alone: the compiler refuses it",
    "run": "ONNX Runtime alone: its compiled build does not run",
    "compare": "ONNX Runtime alone: the compiled build has other numbers",
    "agreed": "compiled, and agrees with the model as written",
    "crash": "the process crashed",
    "limit": "it ran past its limit",
}
_FREE = re.compile(
    r"\"[^\"]*\"|'[^']*'|\((?:the )?node [^)]*\)|Node \([^)]*\)|\[[^\]]*\]|\(kernel \S+\)"
    r"|(?<=operator )\w+|(?<=Op )\(\w+\)|(?<=implementation for )\S+|(?<=output )\S+(?= is)"
    r"|(?<=parameter )\(\w+\)|(?<=operator )\(\w+\)|(?<=in node )\(\w*\)|\d[\d.e+-]*"
)
"""The words of a sentence that are particular to one file."""
_SEVERAL = re.compile(r"…(?:[ ,/]*…)+")


def main() -> None:
    options = command_line(
        __doc__,
        ("folder", Path),
        count=200,
        seed=0,
        limit=30.0,
        only=[""],
        json=str,
    )
    kept = Path(options.json) if options.json else None
    known = kept_outcomes(kept)
    files = chosen(options.folder, options)
    with scratch_folder() as scratch:
        new = {path: file for path, file in files.items() if path not in known}
        for number, model in enumerate(find_and_try(new, scratch / "repository")):
            known[model.path] = outcome_of(model, scratch, options.limit)
            keep(known, kept)
            print(f"\r{number + 1} of {len(new)} {model.path[-60:]:60}", end="", flush=True)
    print()
    show([known[path] for path in files])


def chosen(folder: Path, options: Any) -> dict[str, Path]:
    """Returns the files by their paths in the folder, each content once."""
    contents: dict[str, Path] = {}
    for file in sorted(folder.rglob("*.onnx")):
        contents.setdefault(hashlib.sha256(file.read_bytes()).hexdigest(), file)
    every = {str(file.relative_to(folder)): file for file in sorted(contents.values())}
    wanted = [path for path in every if any(text in path for text in options.only)]
    if 0 < options.count < len(wanted):
        wanted = sorted(random.Random(options.seed).sample(wanted, options.count))
    return {path: every[path] for path in wanted}


def find_and_try(files: Mapping[str, Path], root: Path) -> Sequence[FoundModel]:
    """Returns the models as `init` finds and tries them, in a repository of their own."""
    for path, file in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(file.read_bytes())
    root.mkdir(exist_ok=True)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "--allow-empty", "-m", "files")):
        subprocess.run([*GIT, *words], cwd=root, check=True)
    found = find_models(root, only=[*files], with_guesses=True)
    return try_models(root, found, seconds=float("inf"))


def outcome_of(model: FoundModel, scratch: Path, limit: float) -> Outcome:
    if model.note:
        return Outcome(name=model.path, stage="init", reason=f"{model.path}: {model.note}.")
    if not model.trial.inputs and model.trial.note:
        return Outcome(name=model.path, stage="sizes", reason=f"{model.path}: {model.trial.note}.")
    shapes = {each.name: each.shape for each in model.trial.inputs if not each.form}
    open_ones = {each.input for each in model.guesses}
    case = FileCase(
        file=str(scratch / "repository" / model.path),
        path=model.path,
        shapes={name: shape for name, shape in shapes.items() if name in open_ones},
    )
    folder = scratch / hashlib.sha256(model.path.encode()).hexdigest()
    folder.mkdir()
    (folder / "case.json").write_bytes(msgspec.json.encode(case))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.kit.file_case"])
    return outcome_in_child(try_file, folder, context, limit)


def show(outcomes: Sequence[Outcome]) -> None:
    heading("what happened | files | share")
    for stage, told in STAGES.items():
        count = sum(each.stage == stage for each in outcomes)
        row(told, count, f"{count / max(1, len(outcomes)):.1%}")
    print()
    heading("why | files | for instance", (0, 2))
    kinds: dict[str, list[str]] = {}
    for each in outcomes:
        if each.stage != "agreed":
            sentence = _FREE.sub("…", each.reason.removeprefix(f"{each.name}: ")).rstrip(".")
            sentence = _SEVERAL.sub("…", sentence.replace("|", "/"))
            kinds.setdefault(sentence, []).append(each.name)
    for sentence, names in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        row(sentence, len(names), Path(names[0]).name)


if __name__ == "__main__":
    main()
