import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tunegate.report.escape import code, code_element, prose, visible

UNFRIENDLY = st.text(alphabet=st.sampled_from("ab1 _*`|<>&[]()!#@$\\~-+.=:/\n\t\x1b\u202e\ud800é"))
ANY = st.one_of(st.text(), UNFRIENDLY)
ZERO_WIDTH = "\u200b"
GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def text_of(markdown: str) -> str:
    """Returns the text that a reader sees of a paragraph. Only text and code may come out of it."""
    page = GITHUB.render(markdown)
    inside = re.fullmatch(r"<p>(.*)</p>\n|", page, flags=re.DOTALL)
    assert inside, page
    bare = re.sub(r"</?code>", "", inside.group(1) or "")
    assert "<" not in bare, page
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        bare = bare.replace(entity, character)
    return bare.replace(ZERO_WIDTH, "")


@given(ANY)
@example("`")
@example(" a ")
@example("a\\")
def test_a_name_is_read_as_it_was_written(name: str) -> None:
    assert text_of(code(name)) == visible(name, 120)


@given(ANY)
@example("a www.x.y")
@example("__init__ of net_0_")
def test_a_name_in_a_fold_is_read_as_it_was_written(name: str) -> None:
    assert text_of(f"a {code_element(name)}") == f"a {visible(name, 120)}"


@given(ANY)
@example("1. not a list")
@example("1)")
@example("+ not a list either")
@example("---")
@example("== ==")
@example(":-:")
@example("- not a list")
@example("__init__ and *stars*")
@example("&amp; stays what it was")
def test_a_message_is_read_as_it_was_written(message: str) -> None:
    assert text_of(prose(message)) == visible(message, 600)


@given(ANY)
@example("=")
@example("-")
@example(":-")
def test_a_message_below_another_line_makes_no_heading_of_it(message: str) -> None:
    assert text_of(f"above\n{prose(message)}") == f"above\n{visible(message, 600)}".rstrip("\n")


@given(ANY, ANY)
def test_no_name_and_no_message_breaks_a_table(name: str, message: str) -> None:
    page = GITHUB.render(
        f"| a | b | c |\n| --- | --- | --- |\n| {code(name)} | {prose(message)} | z |"
    )
    assert page.count("<td>") == 3
    assert "<td>z</td>" in page


@given(ANY)
def test_nothing_in_a_visible_text_can_hide_or_turn(text: str) -> None:
    once = visible(text)
    assert once.isprintable()
    assert visible(once) == once


def test_a_visible_text_has_no_password_of_an_address() -> None:
    assert "pass" not in prose("at https://me:pass@host/x") + code("https://me:pass@host|x")


@given(st.text(min_size=1), st.integers(min_value=4, max_value=80))
def test_a_visible_text_keeps_to_its_limit(text: str, limit: int) -> None:
    assert len(visible(text, limit)) <= limit


@pytest.mark.parametrize(
    "text", ["ping @octocat", "see #12", "GH-7", "https://evil.example", "www.x.y"]
)
def test_a_message_links_to_nobody_and_nowhere(text: str) -> None:
    linking = r"@\w|#\d|GH-|://|www\."
    assert re.search(linking, text)
    assert not re.search(linking, re.sub(r"&#\d+;", "\u200b", prose(text)))


@pytest.mark.parametrize(
    "said",
    [
        "fused_conv2d holds 82% of the slowdown: raise budget.minutes (s3://bucket/prefix).",
        *("1, 2", "3%", "0.41", "+3.1% of it", "−2 ms", "(a)", "'x'", "2/3"),
    ],
)
def test_a_value_can_be_read_in_the_plain_text_of_a_report(said: str) -> None:
    assert prose(said) == said


def test_a_path_in_a_fold_can_be_read_in_the_plain_text_of_a_report() -> None:
    path = "models/family_0/net-00.onnx"
    assert code_element(path) == f"<code>{path}</code>"


def test_a_line_is_no_command() -> None:
    assert prose("/merge") == "&#47;merge"
