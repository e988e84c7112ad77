"""The note over real HTTP, against a server that answers as GitLab does."""

import html
import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ci.gitlab.gitlab_server import ANOTHER, ME, NOTES, TOKEN, GitLabServer, gitlab_server
from tests.support.reports import KINDS, make_report
from tunegate.artifacts.verdicts import NextStep
from tunegate.ci.comments import report_marker
from tunegate.ci.gitlab.host import MAX_NOTE_CHARACTERS, Notes, note_text
from tunegate.ci.protocol import HostRefusedError, Secret
from tunegate.report import comment
from tunegate.report.escape import code, prose


@pytest.fixture
def server() -> Iterator[GitLabServer]:
    with gitlab_server() as made:
        yield made


def publish(server: GitLabServer, text: str, token: str = TOKEN) -> None:
    Notes(server.url, 3, 7, "o", Secret(token)).publish(text)


def test_the_first_report_is_a_note_and_the_next_replaces_it(server: GitLabServer) -> None:
    publish(server, "first")
    publish(server, "second")
    (note,) = server.notes
    assert note["body"] == f"{report_marker('o')}\nsecond"
    assert server.requests[-1] == f"PUT {NOTES}/100"


def test_our_note_is_found_behind_many_others(server: GitLabServer) -> None:
    for number in range(250):
        server.planted(f"note {number}", ANOTHER)
    server.planted(f"{report_marker('o')}\nold", ME)
    publish(server, "new")
    assert server.notes[-1]["body"].endswith("new")
    assert len(server.notes) == 251


def test_a_marker_of_somebody_else_is_not_ours(server: GitLabServer) -> None:
    server.planted(f"{report_marker('o')}\nplanted", ANOTHER)
    server.planted(f"{report_marker('another')}\nours, of another directory", ME)
    publish(server, "report")
    assert len(server.notes) == 3
    assert server.notes[0]["body"].endswith("planted")


def test_a_note_stays_within_gitlabs_limit(server: GitLabServer) -> None:
    publish(server, "x" * 2_000_000)
    assert len(server.notes[0]["body"]) <= MAX_NOTE_CHARACTERS


def test_another_token_is_refused_and_not_shown(server: GitLabServer) -> None:
    with pytest.raises(HostRefusedError, match=r"GitLab answered 401 to GET /user") as caught:
        publish(server, "report", "glpat-wrong")
    assert "glpat" not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("GET /api/v4/user", []),
        ("GET /api/v4/user", {"id": True}),
        ("GET /api/v4/user", {"id": "41"}),
        (f"GET {NOTES}", {"notes": []}),
        (f"GET {NOTES}", None),
        (f"GET {NOTES}", [{"id": "../1", "author": ME, "body": report_marker("o")}]),
    ],
)
def test_an_answer_of_another_shape_fails(server: GitLabServer, asked: str, answer: object) -> None:
    server.answers[asked] = (200, answer)
    with pytest.raises(HostRefusedError, match="GitLab answered with"):
        publish(server, "report")
    assert not server.notes


def test_odd_notes_of_others_are_passed_over(server: GitLabServer) -> None:
    odd: list[object] = [None, 7, {}, {"author": None}, {"author": ME, "body": None}]
    server.answers[f"GET {NOTES}"] = (200, odd)
    publish(server, "report")
    assert len(server.notes) == 1


# What GitLab would do with a text, by its own patterns, and a report that would have it do so.

COMMAND = re.compile(r"^\s*/[a-z_]+", re.MULTILINE)
REFERENCES = {
    "a person": re.compile(r"(?<!\w)@[a-zA-Z0-9_]"),
    "an issue": re.compile(r"#\d"),
    "a merge request": re.compile(r"!\d"),
    "an epic": re.compile(r"&\d"),
    "a snippet": re.compile(r"\$\d"),
    "a label": re.compile(r"~[\w\"]"),
    "a milestone": re.compile(r"%[\w\"{]"),
    "an alert": re.compile(r"\^alert"),
    "a vulnerability": re.compile(r"\[(vulnerability|TOC|_TOC_|cadence)"),
    "an issue of Jira": re.compile(r"\b[A-Z][A-Z0-9_]+-\d"),
}
"""The commands that GitLab looks for in text, outside of code, after it has read references."""
CODE_SPAN = re.compile(r"`[^`\n]*`")
CODE = re.compile(r"`[^`\n]*`|<code>.*?</code>|\]\(\S*\)|<[^<>]*>")
ATTACKS = [
    "/merge",
    "\n/merge\n",
    "  /approve",
    "x\r\n/close",
    "x\u2028/close",
    "@all @root",
    "!7 #7 &7 $7 ~7 %7 ^alert#7",
    '%"v1" ~"bug"',
    "[vulnerability:1] [TOC] [[_TOC_]]",
    "%{project_id}",
    "SECRET-123",
    "&#33;7 &#x40;all &commat;all",
    "`!7` <code>!7</code>",
    "</code>@all",
    "`@all\n/merge",
    "<img src=x onerror=alert(1)>",
    "](http://x) ![x](http://x)",
    "```suggestion\n/merge\n```",
    "|\n/merge|",
    "<details>\n/merge",
    "> \n/merge",
]


def done_by_gitlab(text: str) -> list[str]:
    shown = html.unescape(CODE.sub(" ", text))
    found = [what for what, pattern in REFERENCES.items() if pattern.search(shown)]
    return [*found, *(["a command"] if COMMAND.search(text) else [])]


def test_the_patterns_see_what_they_look_for() -> None:
    every = "@a #1 !1 &1 $1 ~a %a ^alert [TOC] AB-1\n/merge"
    assert done_by_gitlab(every) == [*REFERENCES, "a command"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_in_a_report_is_done_by_gitlab(attack: str) -> None:
    made = make_report("hostile")
    findings = [
        msgspec.structs.replace(found, model=attack, target=attack, reason=attack)
        for found in made.verdict.findings
    ]
    planted = msgspec.structs.replace(
        made,
        verdict=msgspec.structs.replace(made.verdict, findings=tuple(findings)),
        warnings=(attack,),
        next_steps=(NextStep((attack,)),),
    )
    text = note_text(comment.render(planted))
    assert done_by_gitlab(text) == []
    assert "<img" not in CODE_SPAN.sub("", text)


@pytest.mark.parametrize("kind", KINDS)
def test_no_report_does_anything_in_gitlab(kind: str) -> None:
    assert done_by_gitlab(note_text(comment.render(make_report(kind)))) == []


@given(st.text(alphabet=st.sampled_from('/@!#%&~$^[]{}`<>|\\"\n\r a1A-_:;()'), max_size=60))
def test_no_name_and_no_message_is_done_by_gitlab(text: str) -> None:
    said = f"- {code(text)}\n{prose(text)}\n| {code(text)} | {prose(text)} |\n"
    assert done_by_gitlab(note_text(said)) == []


@given(st.text(max_size=200))
def test_also_a_text_that_nobody_escaped_holds_no_command(text: str) -> None:
    assert not re.search(r"^[ \t]*/", note_text(text), re.MULTILINE)


def test_a_reader_sees_the_same_text() -> None:
    text = "A `b/c!7` **+3.1%** [This run](https://x/-/jobs/7#L1) 7% &#38; more, é\n/merge !7"
    assert html.unescape(note_text(text)).replace("\u200b", "") == html.unescape(text)


@pytest.mark.parametrize("piece", ["<code>", "\n", " \n", "`", "<", "](https://", "&", "A-", "/"])
def test_no_text_takes_longer_than_its_length(piece: str) -> None:
    """A test that runs into its limit of time is one that fails."""
    assert note_text(piece * 100_000)
