from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import clone, new_repository
from tunegate.system.git.repository import GitRepository

KEY = "Tunegate-Waiver"


def test_trailers_of_a_branch_are_read_newest_first_and_those_of_the_base_are_not(
    tmp_path: Path,
) -> None:
    checkout = new_repository(tmp_path / "r")
    base = checkout.commit({"a": b"1"}, f"one\n\n{KEY}: {{of: main}}")
    first = checkout.commit(
        {"a": b"2"}, f"two\n\nWords.\n\nSigned-off-by: A\n{KEY}: {{of: two,\n  folded: yes}}"
    )
    second = checkout.commit({"a": b"3"}, f"three\n\n{KEY}: x\n{KEY}: y\nTunegate-Other: z")
    head = checkout.commit({"a": b"4"}, f"four {KEY}: no trailer\n\nNor is {KEY}: this one here.")
    found = GitRepository(checkout.path).trailers(base, head, KEY)
    assert [(each.commit, each.value) for each in found] == [
        (second, "x"),
        (second, "y"),
        (first, "{of: two, folded: yes}"),
    ]


def test_a_range_that_git_does_not_know_has_none(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    head = checkout.commit({"a": b"1"})
    assert GitRepository(checkout.path).trailers("0" * 40, head, KEY) == ()


def test_a_shallow_clone_takes_no_older_trailer_for_one_of_the_branch(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "r")
    origin.commit({"a": b"1"}, f"old\n\n{KEY}: old")
    base = origin.commit({"a": b"2"}, "base")
    origin.git("branch", "topic", f"{base}~1")
    origin.git("checkout", "-q", "topic")
    origin.commit({"b": b"3"}, f"new\n\n{KEY}: new")
    origin.git("checkout", "-q", "main")
    head = origin.merge("topic")
    for fetches, values in ((False, []), (True, ["new"])):
        here = clone(origin, tmp_path / f"fetches-{fetches}", "--depth=1")
        here.git("fetch", "-q", "--depth=1", "origin", base)
        found = GitRepository(here.path).trailers(base, head, KEY, may_fetch=fetches)
        assert [each.value for each in found] == values
