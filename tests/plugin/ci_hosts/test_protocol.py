"""The contract of a CI host, for every host that is installed: by name, none is left out."""

from __future__ import annotations

import inspect
import io
import sys
from pathlib import Path

import pytest

from tunegate.ci_hosts.protocol import (
    Annotation,
    AskedRevisions,
    CiHost,
    HostRefusedError,
    JobEvent,
    JobReport,
    Links,
)
from tunegate.ci_hosts.registry import HOST_GROUP, opened_host
from tunegate.ci_hosts.revision_choice import Usual
from tunegate.errors import TunegateError
from tunegate_cache.installed_plugins import installed

NAMES = list(installed(HOST_GROUP))
HOSTILE = "x\n::error::planted\r\n\x1b[0Ksection_start:1:a\r\x1b[0K%0A/merge \u2028 <b>"
SECRET = "secret-of-a-ci-host"
TOKENS = {
    "TUNEGATE_GITHUB_TOKEN": SECRET,
    "TUNEGATE_GITLAB_TOKEN": SECRET,
    "TUNEGATE_BITBUCKET_TOKEN": SECRET,
    "SYSTEM_ACCESSTOKEN": SECRET,
}
NUMBER = JobEvent(revisions=Usual(), pull_request=7)


@pytest.fixture(params=NAMES)
def host(request: pytest.FixtureRequest) -> CiHost:
    return opened_host(request.param, TOKENS)


def test_there_are_several() -> None:
    assert {"github", "gitlab", "none"} <= set(NAMES)


def test_it_has_every_method_with_the_parameters_of_the_protocol(host: CiHost) -> None:
    for name, method in inspect.getmembers(CiHost, inspect.isfunction):
        if name != "__subclasshook__" and not name.startswith("_"):
            wanted, found = inspect.signature(method), inspect.signature(getattr(type(host), name))
            assert list(found.parameters) == list(wanted.parameters), name


def test_it_is_not_here_where_no_variable_says_so(host: CiHost) -> None:
    assert type(host).is_here({}) is False


def test_an_event_without_its_variables_is_refused_or_the_usual_one(host: CiHost) -> None:
    found, refused = None, None
    try:
        found = host.event(AskedRevisions())
    except TunegateError as error:
        refused = error
    assert refused or (found and isinstance(found.revisions, Usual))
    assert refused is None or (refused.exit_code == 2 and "\n" not in str(refused))


def test_whoever_names_both_revisions_is_asked_nothing_and_teaches_main_nothing(
    host: CiHost,
) -> None:
    event = host.event(AskedRevisions(base="a" * 40, head="b" * 40))
    assert event.zone != "main"
    assert event.pull_request is None


def test_it_knows_no_address_that_no_variable_says(host: CiHost, tmp_path: Path) -> None:
    assert host.links(tmp_path) == Links()


def test_what_it_tells_is_one_line_for_each_annotation(
    host: CiHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    annotation = Annotation(level="error", title=HOSTILE, text=HOSTILE, file=HOSTILE, line=1)
    outputs = {"verdict": "pass", "changed": HOSTILE}
    host.tell(JobReport(outputs=outputs, annotations=[annotation] * 2, summary=HOSTILE))
    shown = capsys.readouterr()
    lines = (shown.out + shown.err).split("\n")[:-1]
    assert len(lines) == 2
    assert not [line for line in lines if line.startswith("::error::planted")]
    host.tell(JobReport(outputs=outputs, annotations=[annotation], directory=tmp_path))
    assert all(path.name.startswith("ci-") for path in tmp_path.iterdir())


def test_what_is_printed_meanwhile_is_no_instruction_and_afterwards_all_is_as_before(
    host: CiHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with host.literal_output():
        stream.write("names of a pull request\n")
    began, _, ended = stream.getvalue().partition("names of a pull request\n")
    assert bool(began) == bool(ended)


def test_a_comment_that_cannot_be_written_is_refused_without_a_secret(host: CiHost) -> None:
    said = []
    for event in (NUMBER, JobEvent(revisions=Usual())):
        try:
            host.comment(event, "o", "report")
        except HostRefusedError as error:
            said.append(str(error))
    assert not [text for text in said if SECRET in text]


def test_it_never_shows_its_token(host: CiHost) -> None:
    assert SECRET not in repr(host)
