"""The comment over real HTTP, against a server that answers as Bitbucket does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.ci.json_server import serving

from ci_hosts_tests.bitbucket.bitbucket_server import (
    ANOTHER,
    COMMENTS,
    ME,
    TOKEN,
    BitbucketServer,
)
from tunegate.ci import http as rest_api
from tunegate.ci.protocol import HostRefusedError, Secret
from tunegate_ci_hosts.bitbucket import comments as bitbucket_comments
from tunegate_ci_hosts.bitbucket.comment_text import bitbucket_marker
from tunegate_ci_hosts.bitbucket.comments import MAX_BITBUCKET_CHARACTERS, BitbucketComments


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BitbucketServer]:
    monkeypatch.setattr(rest_api, "FIRST_WAIT_SECONDS", 0.001)
    with serving(BitbucketServer()) as made:
        monkeypatch.setattr(bitbucket_comments, "API", made.url)
        yield made


def publish(text: str, token: str = TOKEN, *, updates_only: bool = False) -> None:
    BitbucketComments("acme/models", 19, "o", Secret(token)).publish(
        text, updates_only=updates_only
    )


def test_the_first_report_is_a_comment_and_the_next_replaces_it(server: BitbucketServer) -> None:
    publish("first")
    publish("second")
    assert server.texts == [f"{bitbucket_marker('o')}\n\nsecond"]
    assert server.requests[-1] == f"PUT {COMMENTS}/100"


def test_where_only_an_earlier_report_is_replaced_there_is_no_first_one(
    server: BitbucketServer,
) -> None:
    publish("nothing", updates_only=True)
    assert server.comments == []


def test_our_comment_is_found_behind_many_others(server: BitbucketServer) -> None:
    for number in range(250):
        server.planted(f"comment {number}", ANOTHER)
    server.planted(f"{bitbucket_marker('o')}\n\nold", ME)
    publish("new")
    assert server.texts[-1].endswith("new")
    assert len(server.comments) == 251


def test_a_marker_of_somebody_else_is_not_ours(server: BitbucketServer) -> None:
    server.planted(f"{bitbucket_marker('o')}\n\nours", ME)
    for _ in range(3):
        server.planted(f"{bitbucket_marker('o')}\n\nplanted", ANOTHER)
    server.planted(f"{bitbucket_marker('o')}\n\ndeleted", ME, deleted=True)
    publish("new")
    assert [text.rpartition("\n")[2] for text in server.texts] == [
        *("new", "planted", "planted", "planted", "deleted")
    ]


def test_where_none_is_ours_there_is_a_new_one(server: BitbucketServer) -> None:
    server.planted(f"{bitbucket_marker('o')}\n\nplanted", ANOTHER)
    publish("report")
    assert [text.rpartition("\n")[2] for text in server.texts] == ["planted", "report"]


def test_a_comment_stays_within_the_limit(server: BitbucketServer) -> None:
    publish("# Fail\n\n" + "- &#124; much\n" * 20_000)
    assert len(server.texts[0]) <= MAX_BITBUCKET_CHARACTERS


@pytest.mark.parametrize("status", [301, 401, 500])
def test_a_refusal_says_the_status_and_no_secret(server: BitbucketServer, status: int) -> None:
    publish("first")
    server.answers[f"PUT {COMMENTS}/100"] = (status, {"message": TOKEN})
    with pytest.raises(HostRefusedError, match=f"answered {status} to PUT") as caught:
        publish("report")
    assert TOKEN not in str(caught.value)
    assert len(server.comments) == 1


@pytest.mark.parametrize("answer", [[], None, {"values": None}])
def test_an_answer_of_another_shape_fails(server: BitbucketServer, answer: object) -> None:
    server.answers[f"GET {COMMENTS}"] = (200, answer)
    with pytest.raises(HostRefusedError, match="Bitbucket answered with"):
        publish("report")
    assert not server.comments


def test_odd_comments_of_others_are_passed_over(server: BitbucketServer) -> None:
    odd: list[object] = [None, 7, {}, {"id": 1, "content": None}, {"id": "1", "content": {}}]
    server.answers[f"GET {COMMENTS}"] = (200, {"values": odd})
    publish("report")
    assert len(server.comments) == 1
