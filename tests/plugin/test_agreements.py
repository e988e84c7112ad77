from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.waivers import TODAY
from tunegate.agreements import agreed_waivers
from tunegate.artifacts.changes import Revisions
from tunegate.edges.git import GitRepository

FIELDS = "model: {}, target: cpu, ceiling-percent: {}, issue: i, reason: r"
FILE = "waivers: [{%s, expires: 2026-07-20}, {%s, expires: 2026-07-20}]\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The file waives a and b, a commit waives a for more."""
    made = new_repository(tmp_path / "r")
    made.commit({"m": b"1"})
    text = FILE % (FIELDS.format("a.onnx", 4), FIELDS.format("b.onnx", 4))
    message = "Widen\n\nTunegate-Waiver: {" + FIELDS.format("a.onnx", 9) + "}"
    made.commit({"tunegate-waivers.yaml": text.encode()}, message)
    return made


def ceilings(checkout: Checkout, base: str | None, *, with_trailers: bool) -> dict[str, float]:
    commits = [None if name is None else checkout.git("rev-parse", name) for name in (base, "HEAD")]
    revisions = Revisions(base=commits[0], head=str(commits[1]))
    found = agreed_waivers(
        GitRepository(checkout.path), revisions, TODAY, with_trailers=with_trailers
    )
    return {waiver.model: waiver.ceiling_percent for waiver in found}


def test_a_commit_of_the_change_goes_before_the_file(checkout: Checkout) -> None:
    found = ceilings(checkout, "HEAD~1", with_trailers=True)
    assert found == {"a.onnx": 9, "b.onnx": 4}


def test_commits_waive_nothing_where_that_is_not_switched_on(checkout: Checkout) -> None:
    assert ceilings(checkout, "HEAD~1", with_trailers=False) == {"a.onnx": 4, "b.onnx": 4}


def test_a_waiver_of_an_earlier_pull_request_is_over(checkout: Checkout) -> None:
    checkout.commit({"m": b"2"}, "Next")
    assert ceilings(checkout, "HEAD~1", with_trailers=True) == {"a.onnx": 4, "b.onnx": 4}
    assert ceilings(checkout, None, with_trailers=True) == {"a.onnx": 4, "b.onnx": 4}
