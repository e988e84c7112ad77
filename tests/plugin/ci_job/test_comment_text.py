from __future__ import annotations

import pytest

from tunegate.ci_hosts.protocol import Links
from tunegate.ci_job.comment_text import with_links


def test_a_comment_says_below_its_first_line_where_to_look_further() -> None:
    links = Links(run="https://ci/1", report="https://ci/1/report.html")
    text = with_links("# Pass\n\n| table |\n", links)
    shown = "[This run](https://ci/1) · [whole report](https://ci/1/report.html)"
    assert text == f"# Pass\n\n{shown}\n\n| table |\n"


def test_without_an_address_the_report_stays_as_it_is() -> None:
    assert with_links("# Pass\n", Links()) == "# Pass\n"


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "https://x) [y](z", "https://x\n/merge", "https://<b>", "x"]
)
def test_what_is_no_address_is_left_out(address: str) -> None:
    assert with_links("report", Links(run=address)) == "report"
