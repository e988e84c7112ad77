from __future__ import annotations

import pytest

from tunegate.ci_hosts.protocol import Links
from tunegate.ci_job.comment_text import with_links


def test_a_comment_ends_with_where_to_look_further() -> None:
    links = Links(run="https://ci/1", report="http://ci/2")
    assert with_links("text\n\n", links) == (
        "text\n\n[This run](https://ci/1) · [whole report](http://ci/2)\n"
    )
    assert with_links("text", Links(report="https://ci/2")) == (
        "text\n\n[whole report](https://ci/2)\n"
    )


@pytest.mark.parametrize(
    "address", ["", "javascript:a()", "https://ci/1) [x](https://evil", "https://ci/a b", "ci/1"]
)
def test_what_could_be_more_than_an_address_is_no_link(address: str) -> None:
    assert with_links("text\n", Links(run=address)) == "text\n"
