"""`tunegate demo`: three pull requests against a throw-away repository, for real."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tunegate import artifact_io
from tunegate.artifacts.verdicts import Finding, Verdict
from tunegate.commands import demo_repository, run
from tunegate.commands.standard_output import write_json, write_line
from tunegate.edges.output_directory import opened_output
from tunegate.errors import BUG, PASS
from tunegate.settings import Overrides, Settings

_FIRST_MINUTES, _LATER_MINUTES = 2.0, 1.0


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One pull request of the demo, and how it ended."""

    title: str
    verdict: Verdict
    problem: str
    report: str
    seconds: float


class Played(msgspec.Struct, frozen=True):
    acts: tuple[Act, ...]


def run_demo(settings: Settings, *, directory: Path) -> int:
    """0 when the three verdicts are what they should be. A second run reuses the cache."""
    with opened_output(directory, "demo"):
        acts = _played(directory)
    if settings.as_json:
        write_json(Played(acts))
    else:
        _show(acts)
    return PASS if not any(act.problem for act in acts) else BUG


def _played(directory: Path) -> tuple[Act, ...]:
    root, cache = directory / "repository", directory / "cache"
    repository = demo_repository.create(root, cache=cache, minutes=_FIRST_MINUTES)
    first = _play("a", "a new model", directory, None, _first_problem)
    demo_repository.branch(repository, "retrained")
    demo_repository.commit(repository, demo_repository.retrained(), "Retrain")
    second = _play("b", "new weights, same graph", directory, "main", _second_problem)
    demo_repository.branch(repository, "wider-kernel")
    demo_repository.commit(repository, demo_repository.slowed(), "Try a 9x9 kernel in fire5")
    third = _play("c", "a much slower layer", directory, "main", _third_problem)
    return first, second, third


def _play(
    letter: str, title: str, directory: Path, base: str | None, judge: Callable[[Verdict], str]
) -> Act:
    sys.stderr.write(f"\n=== pull request {letter}: {title} ===\n")
    out = directory / f"pull-request-{letter}"
    started = time.monotonic()
    run.run(
        Settings(
            repository=directory / "repository",
            out=out,
            base=base,
            overrides=Overrides(minutes=_FIRST_MINUTES if base is None else _LATER_MINUTES),
        )
    )
    verdict = artifact_io.read(out / "verdict.json", Verdict)
    return Act(
        title=f"{letter}. {title}",
        verdict=verdict,
        problem=judge(verdict),
        report=str(out / "report.html"),
        seconds=time.monotonic() - started,
    )


def _first_problem(verdict: Verdict) -> str:
    return "" if verdict.exit_code == PASS and _only(verdict).status == "new" else "should be new"


def _second_problem(verdict: Verdict) -> str:
    if verdict.exit_code != PASS or _only(verdict).status != "pass":
        return "should pass"
    tuning = verdict.tuning
    return "" if tuning.trials == 0 and tuning.exact == tuning.tasks else "should need no trial"


def _third_problem(verdict: Verdict) -> str:
    finding = _only(verdict)
    if verdict.exit_code != 1 or finding.status != "fail":
        return "should fail"
    worst = finding.differences[0].name if finding.differences else "nothing"
    named = demo_repository.SLOWED_LAYER in worst
    return "" if named else f"should name {demo_repository.SLOWED_LAYER}, not {worst}"


def _only(verdict: Verdict) -> Finding:
    (finding,) = verdict.findings
    return finding


def _show(acts: tuple[Act, ...]) -> None:
    write_line("")
    for act in acts:
        tuning, finding = act.verdict.tuning, _only(act.verdict)
        usd = "" if tuning.usd is None else f", {tuning.usd:.4f} USD"
        write_line(f"{act.title}: {finding.status} (exit code {act.verdict.exit_code})")
        write_line(f"   {finding.reason}")
        if finding.differences and finding.status == "fail":
            write_line(f"   held by: {finding.differences[0].name}")
        write_line(
            f"   tuning: {tuning.tasks} tasks, {tuning.exact} from the cache, {tuning.trials} trials, "
            f"{tuning.seconds:.0f} s{usd}; all of it {act.seconds:.0f} s"
        )
        write_line(f"   report: {act.report}")
        if act.problem:
            write_line(f"   NOT AS EXPECTED: {act.problem}")
