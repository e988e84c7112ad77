"""The table in docs/revisions.md is what real runs compare, and what they say of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.revisions import hosted_situations, recorded_situations
from tests.e2e.revisions.server import World
from tests.e2e.revisions.situations import SITUATIONS, Situation

JOBS = (hosted_situations.OTHER, recorded_situations.BUILDKITE)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "revisions.md"
HEADING = "| where | what happened | base | what the run says |\n|---|---|---|---|\n"


@pytest.mark.parametrize("situation", SITUATIONS, ids=[each.found.__name__ for each in SITUATIONS])
def test_a_run_compares_and_says_what_the_page_says(
    situation: Situation, template: Path, tmp_path: Path
) -> None:
    found = situation.found(World(template, tmp_path))
    assert found.revisions.base == found.base
    said = re.sub(r"\b[0-9a-f]{12}\b", "…", found.revisions.reason)
    line = f"| {situation.where} | {situation.what} | {situation.base} | {said} |"
    assert line in PAGE.read_text().splitlines()


def test_the_page_says_nothing_else() -> None:
    _, _, rest = PAGE.read_text().partition(HEADING)
    rows, _, _ = rest.partition("\n\n")
    assert len(rows.splitlines()) == len(SITUATIONS)
