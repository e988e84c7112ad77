"""The thread over real HTTP, against a server that answers as Azure DevOps does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ci.json_server import serving

from ci_hosts_tests.azure.azure_server import (
    ANOTHER,
    ME,
    REPOSITORY,
    THREADS,
    TOKEN,
    AzureServer,
)
from tunegate.ci import http as rest_api
from tunegate.ci.comments import report_marker
from tunegate.ci.protocol import HostRefusedError, Secret
from tunegate_ci_hosts.azure.threads import MAX_THREAD_CHARACTERS, Threads, thread_text


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_api, "FIRST_WAIT_SECONDS", 0.001)


@pytest.fixture
def server() -> Iterator[AzureServer]:
    with serving(AzureServer()) as made:
        yield made


def publish(
    server: AzureServer, text: str, token: str = TOKEN, *, updates_only: bool = False
) -> None:
    threads = Threads(server.url, "Vision Models", (REPOSITORY, 7), "o", Secret(token))
    threads.publish(text, updates_only=updates_only)


def test_the_first_report_is_a_closed_thread_and_the_next_replaces_it(server: AzureServer) -> None:
    publish(server, "first")
    publish(server, "second")
    assert server.texts == [f"{report_marker('o')}\nsecond"]
    assert server.threads[0]["status"] == "closed"
    assert server.requests[-1] == f"PATCH {THREADS}/100/comments/1"


def test_where_only_an_earlier_report_is_replaced_there_is_no_first_one(
    server: AzureServer,
) -> None:
    publish(server, "nothing", updates_only=True)
    assert server.threads == []


def test_a_marker_of_somebody_else_is_not_ours(server: AzureServer) -> None:
    server.planted(f"{report_marker('o')}\nplanted", ANOTHER)
    server.planted(f"{report_marker('another')}\nof another directory", ME)
    server.planted(f"{report_marker('o')}\ndeleted", ME, isDeleted=True)
    publish(server, "report")
    assert len(server.threads) == 4
    assert server.texts[0].endswith("planted")


def test_a_thread_that_is_gone_is_written_anew(server: AzureServer) -> None:
    publish(server, "first")
    server.answers[f"PATCH {THREADS}/100/comments/1"] = (404, {})
    publish(server, "second")
    assert len(server.threads) == 2


def test_a_thread_stays_within_the_limit(server: AzureServer) -> None:
    publish(server, "- @x\n" * 100_000)
    assert len(server.texts[0]) <= MAX_THREAD_CHARACTERS


@pytest.mark.parametrize("status", [301, 403, 500])
def test_a_refusal_says_the_status_and_no_secret(server: AzureServer, status: int) -> None:
    server.answers[f"POST {THREADS}"] = (status, {"message": TOKEN})
    with pytest.raises(HostRefusedError, match=f"answered {status} to POST") as caught:
        publish(server, "report")
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("GET /_apis/connectionData", []),
        ("GET /_apis/connectionData", {"authenticatedUser": {"id": ""}}),
        (f"GET {THREADS}", []),
        (f"GET {THREADS}", {"value": None}),
        (
            f"GET {THREADS}",
            {
                "value": [
                    {
                        "id": "../1",
                        "comments": [
                            {"id": 1, "author": {"id": ME}, "content": report_marker("o")}
                        ],
                    }
                ]
            },
        ),
    ],
)
def test_an_answer_of_another_shape_fails(server: AzureServer, asked: str, answer: object) -> None:
    server.answers[asked] = (200, answer)
    with pytest.raises(HostRefusedError, match="Azure DevOps answered with"):
        publish(server, "report")
    assert not server.threads


def test_odd_threads_of_others_are_passed_over(server: AzureServer) -> None:
    odd: list[object] = [None, 7, {}, {"comments": []}, {"comments": [None]}]
    server.answers[f"GET {THREADS}"] = (200, {"value": odd})
    publish(server, "report")
    assert len(server.threads) == 1


@pytest.mark.parametrize("text", ["@<6d0f>", "`@<6d0f>`", "#12", "!7", "see #12"])
def test_nobody_is_mentioned_and_nothing_is_referred_to(text: str) -> None:
    assert thread_text(text) != text
    assert thread_text(text).replace("\u200b", "") == text


@given(st.text(alphabet=st.sampled_from("@#!<&8;[](): ahtps/"), max_size=40))
def test_only_a_character_of_no_width_is_added(text: str) -> None:
    assert thread_text(text).replace("\u200b", "") == text


def test_addresses_and_references_to_characters_stay_as_they_are() -> None:
    text = "&#8203; ### Pass [run](https://dev.azure.com/a/b#c)"
    assert thread_text(text) == text
