"""The table of base and head in the README of this extra is what real runs compare."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.e2e.revisions.conftest import template
from tests.e2e.revisions.server import World
from tests.e2e.revisions.situations import Situation, row_of

from ci_hosts_tests.revisions.recorded_situations import RECORDED

__all__ = ["template"]
PAGE = Path(__file__).resolve().parents[3] / "README.md"
HEADING = "| where | what happened | base | what the run says |\n|---|---|---|---|\n"


@pytest.mark.parametrize("situation", RECORDED, ids=[each.found.__name__ for each in RECORDED])
def test_a_run_compares_and_says_what_the_page_says(
    situation: Situation, template: Path, tmp_path: Path
) -> None:
    assert row_of(situation, World(template, tmp_path)) in PAGE.read_text().splitlines()


def test_the_page_says_nothing_else() -> None:
    _, _, rest = PAGE.read_text().partition(HEADING)
    rows, _, _ = rest.partition("\n\n")
    assert len(rows.splitlines()) == len(RECORDED)
