from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.edges.earlier_results import forget_results

PLANNING = {"tasks.json", "plan.json", "matrix.json", "outcome-0.json", "outcome-12.json"}
GATING = {
    "measurements.json",
    "verdict.json",
    "report.md",
    "report.html",
    "junit.xml",
    "sarif.json",
}
OTHERS = {"changes.json", "notes.md", "outcome.txt"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for name in PLANNING | GATING | OTHERS:
        (tmp_path / name).touch()
    (tmp_path / "models").mkdir()
    return tmp_path


def names(out: Path) -> set[str]:
    return {path.name for path in out.iterdir() if path.is_file()}


def test_a_new_plan_leaves_no_outcome_and_no_verdict_of_the_last(out: Path) -> None:
    forget_results(out, since="plan")
    assert names(out) == OTHERS
    assert (out / "models").is_dir()


def test_a_new_gate_keeps_the_plan_and_the_outcomes_it_works_from(out: Path) -> None:
    forget_results(out, since="gate")
    assert names(out) == OTHERS | PLANNING


def test_an_empty_directory_is_fine(tmp_path: Path) -> None:
    forget_results(tmp_path, since="plan")
    assert names(tmp_path) == set()
