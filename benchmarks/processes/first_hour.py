"""The first hour of four users, each as a way that is walked, timed and pictured.

    python -m benchmarks.processes.first_hour DIRECTORY [--model FILE]
        [--ways reader own reviewer lead] [--minutes 1] [--whole-demo]

The reader clones, and runs the demo of the README. The owner has a repository with a model: clones,
installs, `init`, commits, `doctor`, `warm`, and gets a verdict on new weights and on more work. The
reviewer sees the comment of that pull request at 780 pixels, and opens its report. The lead opens
the history, what it cost, and the front page of the documentation. DIRECTORY keeps what was said
(`*.log`) and the pictures. The owner's first verdict must come within ten minutes of the clone, or
this ends with 1. Without `--model` it is the network of the tutorial.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

import onnx

from benchmarks.kit.command import Many, command_line
from benchmarks.kit.model_changes import new_weights, slower
from benchmarks.kit.tables import heading, row
from benchmarks.kit.walks.pictures import comment_page, pictured
from benchmarks.kit.walks.timed_steps import Walk

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 600
GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.invalid")
DECIDED, UNDECIDED = 0, 3
"""Exit codes of a pass, and of a machine that was too busy to decide."""
_SHOWN_FROM_SECONDS = 0.5
"""A step that takes less and goes well is no row of the table."""
REPORT_VIEWS = ((1280, "light"), (1280, "dark"), (400, "light"))


def main() -> None:
    options = command_line(
        __doc__,
        ("directory", Path),
        model=Path,
        ways=Many(str, is_required=False),
        minutes=1.0,
        whole_demo=False,
    )
    ways = options.ways or ["reader", "own", "reviewer", "lead"]
    place = options.directory.resolve()
    walks = []
    if "reader" in ways:
        walks.append(reader(_fresh(place / "reader"), is_whole=options.whole_demo))
    if "own" in ways:
        walks.append(own(_fresh(place / "own"), options))
    views = place / "pictures"
    if "reviewer" in ways:
        reviewer(place / "own" / "repository", views)
    if "lead" in ways:
        walks.append(lead(_fresh(place / "lead"), place / "own", views))
    show_steps(walks)


def reader(place: Path, *, is_whole: bool) -> Walk:
    """Walks through the commands that README tells to try."""
    walk = Walk("reader", place)
    walk.walk("clone", "git", "clone", "-q", str(ROOT), "clone")
    quick = () if is_whole else ("DEMO=--quick",)
    make = ("make", "demo", *quick)
    walk.walk("make demo, with what it installs", *make, at=place / "clone", wanted=(0, 3, 4))
    return walk


def own(place: Path, options: argparse.Namespace) -> Walk:
    """The way from a clone to verdicts in a repository of one's own."""
    bins = place / "environment" / "bin"
    walk = Walk("own", place, path=[bins])
    walk.walk("clone", "git", "clone", "-q", str(ROOT), "clone")
    _install(walk, place)
    repository = place / "repository"
    repository.mkdir()
    walk.walk("a repository", *GIT, "init", "-q", "-b", "main", ".", at=repository)
    _first_model(walk, repository, options.model)
    walk.walk("commit", *GIT, "add", "-A", at=repository)
    walk.walk("commit", *GIT, "commit", "-q", "-m", "A model", at=repository)
    walk.walk("tunegate init", "tunegate", "init", at=repository)
    walk.walk("commit", *GIT, "add", "-A", at=repository)
    walk.walk("commit", *GIT, "commit", "-q", "-m", "Gate it", at=repository)
    walk.walk("tunegate doctor", "tunegate", "doctor", at=repository)
    minutes = f"{options.minutes:g}"
    walk.walk("tunegate warm", "tunegate", "warm", "--minutes", minutes, at=repository)
    _pull_request(walk, repository, "retrained", (DECIDED, UNDECIDED))
    first = walk.seconds
    used = sum(step.processor_seconds for step in walk.steps)
    told = f"{first:.0f} s, {used:.0f} of processors"
    print(f"own: the first verdict came after {told}", file=sys.stderr)
    _pull_request(walk, repository, "more-work", (1,), f"{options.minutes:g}")
    if first > MOST_SECONDS:
        raise SystemExit(f"own: the first verdict took {first:.0f} s, over {MOST_SECONDS}")
    return walk


def reviewer(repository: Path, views: Path) -> None:
    """The comment of the last pull request, and its report."""
    comment = repository / ".tunegate" / "report.md"
    page = comment_page(comment, repository / ".tunegate" / "comment.html")
    text = comment.read_text()
    print(f"reviewer: the first line: {text.splitlines()[0]}", file=sys.stderr)
    widest = max(
        (line.count("|") - 1 for line in text.splitlines() if line.startswith("| ---")), default=0
    )
    heading("picture | size", words=(0, 1))
    for scheme in ("light", "dark"):
        size = pictured(page, views / f"comment-780-{scheme}.png", width=780, scheme=scheme)
        row(f"comment, {scheme}, at most {widest} columns", size)
    for width, scheme in REPORT_VIEWS:
        picture = views / f"report-{width}-{scheme}.png"
        report = repository / ".tunegate" / "report.html"
        row(f"report, {scheme}", pictured(report, picture, width=width, scheme=scheme))


def lead(place: Path, owner: Path, views: Path) -> Walk:
    """The history that the runs left, its costs, and the front page of the documentation."""
    walk = Walk("lead", place, path=[owner / "environment" / "bin"])
    home = {"HOME": str(owner / ".home")}
    out = owner / "repository" / ".tunegate"
    walk.walk("tunegate history", "tunegate", "history", at=owner / "repository", variables=home)
    walk.walk("make site", "make", "site", f"SITE={place / 'site'}", at=owner / "clone")
    heading("picture | size", words=(0, 1))
    front = place / "site" / "index.html"
    for page in (*(out / name for name in ("history.html", "costs.html")), front):
        if page.exists():
            for width, scheme in REPORT_VIEWS:
                name = "docs" if page == front else page.stem
                picture = views / f"{name}-{width}-{scheme}.png"
                row(f"{name}, {scheme}", pictured(page, picture, width=width, scheme=scheme))
    return walk


def show_steps(walks: list[Walk]) -> None:
    titles = "user | step | seconds | of processors | since the clone | exit code"
    heading(titles, words=(0, 1))
    for walk in walks:
        since = 0.0
        for step in walk.steps:
            since += step.seconds
            if step.seconds < _SHOWN_FROM_SECONDS and not step.exit_code:
                continue
            spent = (step.seconds, step.processor_seconds, since)
            row(walk.name, step.what, *(f"{each:.0f}" for each in spent), step.exit_code)


def _fresh(place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return place


def _install(walk: Walk, place: Path) -> None:
    """Installs as README says: with uv where there is one, else with pip."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    what = f"tunegate[tvm] @ git+file://{place / 'clone'}"
    python, environment = "environment/bin/python", "environment"
    if uv:
        walk.walk(
            "a virtual environment", uv, "venv", "-q", "--python", sys.executable, environment
        )
        walk.walk("install, with uv", uv, "pip", "install", "--python", python, what)
    else:
        walk.walk("a virtual environment", sys.executable, "-m", "venv", environment)
        walk.walk("install, with pip", python, "-m", "pip", "install", "-q", what)


def _first_model(walk: Walk, repository: Path, model: Path | None) -> None:
    (repository / "models").mkdir()
    if model is not None:
        shutil.copy(model, repository / "models" / "net.onnx")
        return
    tutorial = (ROOT / "docs" / "tutorial.md").read_text()
    (script,) = re.findall(r"cat > model\.py <<'END'\n(.*?)END\n", tutorial, re.DOTALL)
    (repository / "model.py").write_text(script)
    walk.walk("a model", "python", "model.py", "3", "0", at=repository)


def _pull_request(
    walk: Walk, repository: Path, branch: str, wanted: tuple[int, ...], minutes: str = "0.3"
) -> None:
    walk.walk(f"branch {branch}", *GIT, "switch", "-q", "-c", branch, "main", at=repository)
    file = repository / "models" / "net.onnx"
    before = onnx.load(file)
    onnx.save(new_weights(before) if branch == "retrained" else slower(before, 5.0), file)
    walk.walk("commit", *GIT, "commit", "-qam", branch, at=repository)
    run = ("tunegate", "run", "--base", "main", "--minutes", minutes)
    walk.walk(f"tunegate run: {branch}", *run, at=repository, wanted=wanted)


if __name__ == "__main__":
    main()
