"""The table in docs/revisions.md is what real runs compare, and what they say of it."""

from pathlib import Path

import pytest

from tests.e2e.revisions import hosted_situations
from tests.e2e.revisions.server import World
from tests.e2e.revisions.situations import SITUATIONS, Situation, row_of

JOBS = (hosted_situations.OTHER,)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "revisions.md"
HEADING = "| where | what happened | base | what the run says |\n|---|---|---|---|\n"


@pytest.mark.parametrize("situation", SITUATIONS, ids=[each.found.__name__ for each in SITUATIONS])
def test_a_run_compares_and_says_what_the_page_says(
    situation: Situation, template: Path, tmp_path: Path
) -> None:
    assert row_of(situation, World(template, tmp_path)) in PAGE.read_text().splitlines()


def test_the_page_says_nothing_else() -> None:
    _, _, rest = PAGE.read_text().partition(HEADING)
    rows, _, _ = rest.partition("\n\n")
    assert len(rows.splitlines()) == len(SITUATIONS)
