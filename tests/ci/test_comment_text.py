from __future__ import annotations

import pytest

from tunegate.artifacts.changes import ModelPin, Revisions
from tunegate.ci.comments import with_links
from tunegate.ci.protocol import Links


def test_a_comment_says_below_its_first_line_where_to_look_further() -> None:
    links = Links(run="https://ci/1", report="https://ci/1/report.html")
    text = with_links("# Pass\n\n| table |\n", links)
    shown = "[This run](https://ci/1) · [whole report](https://ci/1/report.html)"
    assert text == f"# Pass\n\n{shown}\n\n| table |\n"


def test_a_comment_links_the_commits_that_it_compares() -> None:
    revisions = Revisions(base="a" * 40, head="b" * 40)
    text = with_links("# Pass\n", Links(commit="https://ci/commit/"), revisions)
    assert f"[base aaaaaaa](https://ci/commit/{'a' * 40})" in text
    assert f"[head bbbbbbb](https://ci/commit/{'b' * 40})" in text


@pytest.mark.parametrize("base", [None, "main) [x](https://evil", "A" * 40])
def test_what_is_no_commit_is_not_linked(base: str | None) -> None:
    text = with_links(
        "# Pass\n", Links(commit="https://ci/commit/"), Revisions(base=base, head="b")
    )
    assert text == "# Pass\n"


def test_digests_of_content_are_no_commits() -> None:
    pin = ModelPin(address="hf://m", version="1", sha256="c" * 64)
    revisions = Revisions(base="a" * 64, head="b" * 64, pins=(pin, pin))
    assert with_links("# Pass\n", Links(commit="https://ci/commit/"), revisions) == "# Pass\n"


def test_without_an_address_the_report_stays_as_it_is() -> None:
    assert with_links("# Pass\n", Links()) == "# Pass\n"


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "https://x) [y](z", "https://x\n/merge", "https://<b>", "x"]
)
def test_what_is_no_address_is_left_out(address: str) -> None:
    assert with_links("report", Links(run=address)) == "report"
