from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.ci.events import JobVariables
from tunegate.errors import ConfigError


def test_a_variable_that_is_not_set_is_empty() -> None:
    job = JobVariables({"A": " x\n"})
    assert (job.text("A"), job.text("B"), job.number("B"), job.commit_or_none("B")) == (
        *("x", ""),
        *(None, None),
    )


@pytest.mark.parametrize("text", ["0", "007", "-1", "1.5", "٣", "1 2", "true", "9" * 20])
def test_what_is_no_number_is_none(text: str) -> None:
    job = JobVariables({"A": text})
    assert job.number("A") is None
    with pytest.raises(ConfigError, match="A is no number"):
        job.required_number("A")


@given(st.text(max_size=70))
def test_a_commit_is_whole_or_refused(text: str) -> None:
    found = JobVariables({"A": text}).commit_or_none("A")
    assert found is None or (len(found) in {40, 64} and set(found) <= set("0123456789abcdef"))


def test_a_branch_has_its_short_name() -> None:
    job = JobVariables({"A": "refs/heads/release/2", "TUNEGATE_DEFAULT_BRANCH": "trunk"})
    assert (job.branch("A"), job.default_branch()) == ("release/2", "trunk")
