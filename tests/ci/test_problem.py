from __future__ import annotations

import pytest

from tunegate.ci.github.host import command_of
from tunegate.ci.job_results import ConfigPlace, job_problem

SECRETS = {"TUNEGATE_GITHUB_TOKEN": "ghs_abcdef", "AWS_SECRET_ACCESS_KEY": "ghs_abcdefgh"}


def test_the_annotation_stands_at_the_place_that_the_text_is_about() -> None:
    found = job_problem(["tunegate.yaml: bad"], 2, {}, ConfigPlace("a b,c.yaml", 7))
    assert command_of(found.annotation()) == (
        "::error file=a b%2Cc.yaml,line=7,title=tunegate::tunegate.yaml: bad"
    )
    assert "in <code>a b,c.yaml:7</code>" in found.markdown()
    assert command_of(job_problem(["bad"], 2, {}).annotation()) == "::error title=tunegate::bad"


@pytest.mark.parametrize("text", ["x ghs_abcdef y", "ghs_abcdefgh", "https://me:ghs_abcdef@host/p"])
def test_no_value_of_a_variable_that_is_named_like_a_secret_is_shown(text: str) -> None:
    shown = job_problem([text], 2, SECRETS)
    assert "ghs_" not in shown.annotation().text + shown.markdown()
    assert "***" in shown.lines[0]


def test_what_stands_before_an_addresss_host_is_not_shown() -> None:
    assert job_problem(["s3 at https://me:word@host/p"], 4, {}).lines == (
        "s3 at https://***@host/p",
    )


def test_short_values_and_harmless_names_are_left_alone() -> None:
    environment = {"TOKEN": "a", "HOME": "tunegate.yaml"}
    assert job_problem(["a tunegate.yaml"], 2, environment).lines == ("a tunegate.yaml",)


def test_a_quoted_text_is_no_markup_in_the_summary() -> None:
    shown = job_problem(["</pre><img src=x>\n## Pass"], 2, {}).markdown()
    assert "<img" not in shown
    assert "\n## Pass" not in shown
    assert "exit code 2: what was asked for cannot be used" in shown


def test_several_problems_have_a_line_each() -> None:
    shown = job_problem(["x is open", "y is\nopen"], 2, {})
    assert shown.annotation().text == "x is open\ny is\nopen"
    assert "<pre>x is open\ny is open</pre>" in shown.markdown()
