"""Other people's models, from `init` to a red gate, untouched.

    python -m benchmarks.real_models.init_to_gate DIRECTORY [--models magika ...] [--minutes 0.5]
        [--threads 1] [--steps added weights more-work] [--own] [--save NAME --merge]

Collects sixteen models of the package index in DIRECTORY (170 MB, once), and does with each what
its owner would, in a repository of its own with a cache of its own: adds it, `tunegate init`,
commits, `tunegate run`; then two pull requests, one with new weights, and one that makes it half as
slow again. With several `--minutes` the first run is repeated, so that tuning goes on from the
cache, and each runtime's time stands after each of them. Prints the tables of docs/benchmarks.
What is done stays in DIRECTORY/<name>/<threads>.json. The `--steps` are done anew whatever stands
there: so pull requests are played again while a machine is quiet. A pull request may tune what it
changes for the first of the `--minutes`. With `--own` nothing is collected: the models are what
lies in DIRECTORY as <name>/model.onnx.
"""

from __future__ import annotations

import argparse
import datetime
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from os import environ
from pathlib import Path
from typing import Any

import msgspec
import onnx

from benchmarks.kit.collected import collected, models_in
from benchmarks.kit.command import command_line
from benchmarks.kit.model_changes import new_weights, slower
from benchmarks.kit.results import machine
from benchmarks.kit.tables import heading, row

SLOWER_SHARE = 0.5
TUNEGATE = (sys.executable, "-m", "tunegate")
CHOOSING = re.compile(r"^tunegate +([0-9.]+) s +\[\d+/\d+\] choose", re.MULTILINE)
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid")


class Run(msgspec.Struct, frozen=True):
    """One `tunegate run`. `times` are milliseconds by runtime, `said` the last line where there is
    no verdict. `choosing_seconds` is from where candidates are launched until the end: of a new
    model, which has no base to be measured beside, that is the election."""

    exit_code: int
    status: str = ""
    reason: str = ""
    seconds: float = 0.0
    measuring_seconds: float = 0.0
    trials: int = 0
    runtime: str = ""
    times: dict[str, float] = {}
    head_ms: float | None = None
    change_percent: float | None = None
    choosing_seconds: float | None = None
    said: str = ""


class Story(msgspec.Struct, frozen=True):
    """The runs of one model; `first` are runs by their minutes of tuning in all, and `measured`
    says when the last of the others was, and on what."""

    name: str
    first: dict[str, Run] = {}
    weights: Run = Run(-1)
    more_work: Run = Run(-1)
    measured: str = ""


def main() -> None:
    options = command_line(
        __doc__,
        ("directory", Path),
        models=[""],
        minutes=[0.5],
        threads=1,
        steps=[""],
        own=False,
    )
    models = models_in(options.directory) if options.own else collected(options.directory)
    names = [name for name in models if name in options.models or options.models == [""]]
    stories = [story_of(name, models[name], options) for name in names]
    show(stories)
    if len(options.minutes) > 1:
        show_times(stories, options.minutes)


def story_of(name: str, model: Path, options: argparse.Namespace) -> Story:
    kept = model.parent / f"{options.threads}.json"
    known = kept.exists() and "added" not in options.steps
    story = (
        msgspec.json.decode(kept.read_bytes(), type=Story) if known else added(name, model, options)
    )
    wanted = options.steps if options.steps != [""] else [] if known else ["weights", "more-work"]
    repository, before = Repository(model, options.threads), onnx.load(model)
    if "weights" in wanted:
        run = repository.pull_request("weights", new_weights(before), options.minutes[0])
        story = msgspec.structs.replace(story, weights=run, measured=now())
    if "more-work" in wanted:
        half = SLOWER_SHARE * (list(story.first.values())[-1].head_ms or 1.0)
        run = repository.pull_request("more-work", slower(before, half), options.minutes[0])
        story = msgspec.structs.replace(story, more_work=run, measured=now())
    kept.write_bytes(msgspec.json.encode(story))
    print(story, file=sys.stderr, flush=True)
    return story


def added(name: str, model: Path, options: argparse.Namespace) -> Story:
    repository = Repository(model, options.threads)
    repository.begin(model)
    first, spent = {}, 0.0
    for minutes in options.minutes:
        first[f"{minutes:g}"] = repository.run("main", minutes - spent)
        spent = minutes
    repository.merge()
    return Story(name, first)


def now() -> str:
    return f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {machine()}"


class Repository:
    """A repository whose branch `model` adds the model and what `init` writes to an empty main."""

    def __init__(self, model: Path, threads: int) -> None:
        self._root = model.parent / f"repository-{threads}"
        home = self._root / ".home"
        cores = ",".join(map(str, range(threads + 1)))
        self._taskset = ("taskset", "-c", cores)
        self._environment = {**environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}

    def begin(self, model: Path, accuracy: str = "") -> None:
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir()
        self._git("init", "-q", "-b", "main")
        (self._root / ".gitignore").write_text(".home\n")
        self._commit()
        self._git("switch", "-q", "-c", "model")
        shutil.copy(model, self._root / "model.onnx")
        self._git("add", "model.onnx")
        self._tunegate("init")
        if accuracy:
            config = self._root / "tunegate.yaml"
            model_entry = '  - path: "*.onnx"\n'
            config.write_text(
                config.read_text().replace(model_entry, f"{model_entry}    accuracy: {accuracy}\n")
            )
        self._commit()

    def merge(self) -> None:
        self._git("switch", "-q", "main")
        self._git("merge", "-q", "--ff-only", "model")

    def pull_request(self, branch: str, model: onnx.ModelProto, minutes: float) -> Run:
        self._git("switch", "-q", "-C", branch, "main")
        onnx.save(model, self._root / "model.onnx")
        self._commit()
        return self.run("main", minutes)

    def run(self, base: str, minutes: float) -> Run:
        started = time.monotonic()
        shutil.rmtree(self._root / ".tunegate", ignore_errors=True)
        done = self._tunegate("run", "--base", base, "--minutes", f"{minutes:g}")
        seconds = time.monotonic() - started
        verdict = self._written("verdict")
        if not verdict or not verdict["findings"]:
            lines = done.stderr.strip().splitlines() or [""]
            return Run(done.returncode, seconds=seconds, said=lines[-1])
        found = _run(done.returncode, seconds, verdict, self._written("measurements"))
        begun = CHOOSING.search(done.stderr)
        return msgspec.structs.replace(found, choosing_seconds=begun and seconds - float(begun[1]))

    def _written(self, name: str) -> dict[str, Any]:
        file = self._root / ".tunegate" / f"{name}.json"
        found: dict[str, Any] = msgspec.json.decode(file.read_bytes()) if file.exists() else {}
        return found

    def _tunegate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._taskset, *TUNEGATE, *arguments],
            cwd=self._root,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def _git(self, *arguments: str) -> None:
        subprocess.run([*GIT, *arguments], cwd=self._root, check=True)

    def _commit(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "a commit")


def _run(exit_code: int, seconds: float, verdict: dict[str, Any], measured: dict[str, Any]) -> Run:
    finding, change = verdict["findings"][0], verdict["findings"][0]["change_percent"]
    build = measured["builds"][0]["head"] if measured.get("builds") else None
    choice = (build or {}).get("choice") or {"times": []}
    return Run(
        exit_code,
        finding["status"],
        finding["reason"],
        seconds,
        sum(cell["seconds"] for cell in measured.get("cells", [])),
        verdict["tuning"]["trials"],
        (build or {}).get("title", ""),
        {time["title"]: time["ms"] for time in choice["times"]},
        finding["head_ms"],
        change and change["center"],
    )


def show(stories: Sequence[Story]) -> None:
    heading(
        "model | added | ships | trials | new weights | trials | seconds besides measuring "
        "| more work | change | measured",
        words=(0, 1, 2, 4, 7, 9),
    )
    for story in stories:
        added, weights, more = list(story.first.values())[-1], story.weights, story.more_work
        besides = f"{weights.seconds - weights.measuring_seconds:.0f}"
        change = "–" if more.change_percent is None else f"{more.change_percent:+.0f}%"
        words = (story.name, _status(added), added.runtime or "–", added.trials)
        row(
            *words, _status(weights), weights.trials, besides, _status(more), change, story.measured
        )


def _status(run: Run) -> str:
    return run.status or f"exit {run.exit_code}: {run.said[:80]}"


def show_times(stories: Sequence[Story], minutes: Sequence[float]) -> None:
    """Milliseconds of each runtime after each number of minutes."""
    titles = sorted({t for s in stories for run in s.first.values() for t in run.times})
    columns = [f"{title}, {m:g} min" for title in titles for m in minutes]
    heading(f"model | {' | '.join(columns)}")
    for story in stories:
        runs = [(title, story.first[f"{m:g}"]) for title in titles for m in minutes]
        times = [f"{r.times[t]:.4g}" if t in r.times else "–" for t, r in runs]
        row(story.name, *times)


if __name__ == "__main__":
    main()
