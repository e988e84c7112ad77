from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.waivers import TODAY
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.verdicts import Waiver
from tunegate.config import GateConfig
from tunegate.errors import ConfigError
from tunegate.review.gate_rules import Waivers
from tunegate.review.waivers import read_waivers
from tunegate.system.git.repository import GitRepository

FIELDS = "model: {}, target: cpu, ceiling-percent: {}, issue: i, reason: r"
FILE = "waivers: [{%s, expires: 2026-07-20}, {%s, expires: 2026-07-20}]\n"
NAME = "tunegate-waivers.yaml"
FROM_HEAD = GateConfig(waivers_from="head")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """The file of the latest commit waives a and b, its message waives a for more."""
    made = new_repository(tmp_path / "r")
    made.commit({"m": b"1"})
    text = FILE % (FIELDS.format("a.onnx", 4), FIELDS.format("b.onnx", 4))
    message = "Widen\n\nTunegate-Waiver: {" + FIELDS.format("a.onnx", 9) + "}"
    made.commit({NAME: text.encode()}, message)
    return made


def test_waivers_of_the_head_do_not_count_before_they_are_merged(checkout: Checkout) -> None:
    found = waivers(checkout, "HEAD~1", GateConfig())
    assert found.counting == ()
    assert ceilings(found.pending) == [("a.onnx", 4), ("b.onnx", 4), ("a.onnx", 9)]
    assert [change.effect for change in found.changes] == ["loosened"] * 2


def test_merged_waivers_count(checkout: Checkout) -> None:
    checkout.commit({"m": b"2"}, "Next")
    found = waivers(checkout, "HEAD~1", GateConfig())
    assert ceilings(found.counting) == [("a.onnx", 4), ("b.onnx", 4)]
    assert (found.pending, found.changes) == ((), ())


def test_waivers_of_the_head_count_where_the_policy_says_so(checkout: Checkout) -> None:
    found = waivers(checkout, "HEAD~1", FROM_HEAD)
    assert ceilings(found.counting) == [("a.onnx", 4), ("b.onnx", 4)]
    assert found.changes == ()


def test_a_commit_of_the_change_goes_before_the_file(checkout: Checkout) -> None:
    gate = GateConfig(waivers_from="head", waiver_trailers=True)
    assert ceilings(waivers(checkout, "HEAD~1", gate).counting) == [("a.onnx", 9), ("b.onnx", 4)]


def test_commits_waive_where_the_policy_says_so_whatever_counts_of_the_file(
    checkout: Checkout,
) -> None:
    found = waivers(checkout, "HEAD~1", GateConfig(waiver_trailers=True))
    assert ceilings(found.counting) == [("a.onnx", 9)]


def test_a_waiver_of_an_earlier_pull_request_is_over(checkout: Checkout) -> None:
    checkout.commit({"m": b"2"}, "Next")
    gate = GateConfig(waiver_trailers=True)
    both = [("a.onnx", 4), ("b.onnx", 4)]
    assert ceilings(waivers(checkout, "HEAD~1", gate).counting) == both
    assert ceilings(waivers(checkout, None, gate).counting) == both


def test_a_trailer_that_does_not_count_need_not_be_well_written(checkout: Checkout) -> None:
    checkout.commit({"m": b"2"}, "Next\n\nTunegate-Waiver: later")
    assert waivers(checkout, "HEAD~1", GateConfig()).pending == ()
    with pytest.raises(ConfigError):
        waivers(checkout, "HEAD~1", GateConfig(waiver_trailers=True))


def test_broken_waivers_of_the_base_waive_nothing_and_block_nobody(checkout: Checkout) -> None:
    checkout.commit({NAME: b"\xff"})
    repaired = FILE % (FIELDS.format("a.onnx", 4), FIELDS.format("b.onnx", 4))
    checkout.commit({NAME: repaired.encode()})
    found = waivers(checkout, "HEAD~1", GateConfig())
    assert (found.counting, len(found.pending)) == ((), 2)
    (told,) = found.notes
    before = checkout.git("rev-parse", "HEAD~1")[:12]
    assert told.startswith(f"nothing is waived: in {before}, whose rules judge, {NAME}: not UTF-8")
    assert found.has_unread


def test_a_waiver_that_was_merged_with_its_blanks_is_told(checkout: Checkout) -> None:
    blank = FIELDS.format("a.onnx", 4).replace("issue: i", 'issue: ""')
    checkout.commit({NAME: (FILE % (blank, FIELDS.format("b.onnx", 4))).encode()})
    checkout.commit({NAME: b""})
    (told,) = waivers(checkout, "HEAD~1", GateConfig()).notes
    assert "issue and reason say why. Fill them in." in told


@pytest.mark.parametrize("broken", [b"\xff", b"waivers: 3", b"- {"])
def test_broken_waivers_of_the_head_are_an_error(checkout: Checkout, broken: bytes) -> None:
    checkout.commit({NAME: broken})
    with pytest.raises(ConfigError, match=NAME):
        waivers(checkout, "HEAD~1", GateConfig())


def waivers(checkout: Checkout, base: str | None, gate: GateConfig) -> Waivers:
    commits = [None if name is None else checkout.git("rev-parse", name) for name in (base, "HEAD")]
    revisions = Revisions(base=commits[0], head=str(commits[1]))
    return read_waivers(GitRepository(checkout.path), revisions, gate, TODAY)


def ceilings(found: tuple[Waiver, ...]) -> list[tuple[str, float]]:
    return [(each.model, each.ceiling_percent) for each in found]
