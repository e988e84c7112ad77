"""One run of the cache for every fault of every kind of request: it loses no time, no record and
no truth."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import pytest

from tests.support.servers.fault_proxy import Verb, fault_proxy
from tests.support.servers.faults import FAULTS, LISTING_FAULTS
from tests.support.servers.moto_server import BUCKET, CREDENTIALS, free_port
from tests.support.two_runs import KNOWN, NEW, PATIENT, Outcome, Place
from tunegate_cache.format.records import ExactHit, Miss
from tunegate_cache.protocol.tuning_cache import Seconds
from tunegate_cache.stores.s3 import S3Store

pytestmark = pytest.mark.usefixtures("credentials")

BUDGET = Seconds(lookup=1.0, publish=1.0)
LONGER = [Seconds(lookup=seconds, publish=seconds) for seconds in (4.0, 16.0)]
"""The time of a run that met no fault before its time was over: the machine is busy."""
SLACK_SECONDS = 20.0
"""Faults that hang do so until the test ends."""
MAKING = threading.Lock()
LANES = 10
VERBS: tuple[Verb, ...] = ("get", "put", "list")
ALL_FAULTS = {**FAULTS, **LISTING_FAULTS}
CASES: list[tuple[str, Verb]] = [(fault, verb) for fault in FAULTS for verb in VERBS]
CASES += [(fault, "list") for fault in LISTING_FAULTS]

HARMLESS = {(fault, verb) for fault in ("latency", "no length", "wrong etag") for verb in VERBS}
HARMLESS |= {("unsorted listing", "list"), ("repeated page", "list")}
HARMLESS |= {(f, "put") for f in ("slow body", "truncated body", "cut short", "empty body")}
HARMLESS |= {("swapped bodies", "put"), ("gzip", "put")}
"""Faults that a client need not notice; the answer to a write has no body to spoil."""

LIES = {(fault, "list") for fault in ("empty listing", "bit flip")}
"""Well-formed answers that nothing tells from the truth: the records seem to be absent."""


def over(url: str) -> S3Store:
    return S3Store(BUCKET, "team/x", endpoint_url=url, region="us-east-1")


@pytest.fixture(scope="module")
def direct(endpoint: str) -> Iterator[S3Store]:
    """The bucket without a fault between. All clients are made of one session: each would read
    the SDK's descriptions again, which takes twenty times as long as to make a client."""
    session = boto3.session.Session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boto3.session, "Session", lambda: session)
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        store = over(endpoint)
        store.names("ready/")
        yield store


def spoilt_run(
    endpoint: str,
    place: Place,
    fault: str,
    verb: Verb,
    *,
    budget: Seconds = BUDGET,
    times: float = float("inf"),
) -> Outcome:
    place.fill()
    with fault_proxy(endpoint) as (url, proxy):
        store = over(url)
        with MAKING:
            store.names("ready/")  # the client is made here, not in the time of the run
        proxy.spoil(verb, place.zone, ALL_FAULTS[fault], times)

        def end() -> int:
            proxy.heal()
            return proxy.met[place.zone]

        return place.run(store, budget, end)


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_keeps_its_time_its_records_and_its_truth(
    endpoint: str, direct: S3Store, tmp_path: Path, verb: Verb
) -> None:
    """All faults of one kind of request side by side: most of their time they wait."""
    faults = [fault for fault, spoilt in CASES if spoilt == verb]

    def run(number: int, fault: str) -> Outcome:
        def within(budget: Seconds) -> Outcome:
            case = f"{verb}-{number}-{budget.lookup:g}"
            place = Place(direct, f"case/{case}", tmp_path / case)
            return spoilt_run(endpoint, place, fault, verb, budget=budget)

        outcome = within(PATIENT if (fault, verb) in HARMLESS else BUDGET)
        for longer in LONGER:
            outcome = outcome if outcome.met else within(longer)
        return outcome

    with ThreadPoolExecutor(LANES) as pool:
        runs = {fault: pool.submit(run, number, fault) for number, fault in enumerate(faults)}
    broken = []
    for fault, future in runs.items():
        try:
            assert_all_is_kept((fault, verb), future.result())
        except Exception as error:  # noqa: BLE001 - all of them are raised below
            error.add_note(f"by the fault: {fault}")
            broken.append(error)
    if broken:
        raise ExceptionGroup(f"a fault of {verb} did harm", broken)


def assert_all_is_kept(case: tuple[str, Verb], outcome: Outcome) -> None:
    assert outcome.met > 0
    assert_in_time(outcome)
    assert_true(outcome)
    assert_nothing_lost(outcome)
    assert case in LIES or "absent" not in outcome.misses
    if case in HARMLESS:
        assert outcome.answers == {r.key: ExactHit((r,)) for r in KNOWN}, outcome.notes
        assert outcome.published, outcome.notes


def assert_in_time(outcome: Outcome) -> None:
    assert outcome.lookup_seconds < outcome.budget.lookup + SLACK_SECONDS
    assert outcome.publish_seconds < outcome.budget.publish + SLACK_SECONDS


def assert_true(outcome: Outcome) -> None:
    """Every answer is what the bucket holds, or a counted miss."""
    truth = {r.key: ExactHit((r,)) for r in KNOWN}
    missed = [answer for answer in outcome.answers.values() if isinstance(answer, Miss)]
    assert sum(outcome.misses.values()) == len(missed)
    assert list(outcome.answers) == list(truth)
    for key, answer in outcome.answers.items():
        assert isinstance(answer, Miss) or answer == truth[key]


def assert_nothing_lost(outcome: Outcome) -> None:
    everything = [*KNOWN, NEW]
    assert NEW in outcome.stored or (not outcome.published and NEW in outcome.waiting)
    assert all(record in outcome.stored for record in KNOWN)
    assert outcome.healed == {r.key: ExactHit((r,)) for r in everything}
    assert all(record in outcome.stored_at_last for record in everything)
    assert outcome.waiting_at_last == []


@pytest.mark.parametrize(
    ("fault", "verb"),
    [
        ("lost answer", "put"),
        ("lost answer", "list"),
        ("reset", "get"),
        ("503", "put"),
        ("503", "get"),
        ("500", "list"),
    ],
)
def test_trouble_that_passes_is_not_noticed(
    endpoint: str, direct: S3Store, tmp_path: Path, fault: str, verb: Verb
) -> None:
    place = Place(direct, f"passes/{fault.replace(' ', '-')}-{verb}", tmp_path)
    outcome = spoilt_run(endpoint, place, fault, verb, budget=PATIENT, times=1)
    assert outcome.met == 1
    assert outcome.answers == {r.key: ExactHit((r,)) for r in KNOWN}
    assert outcome.published
    assert_nothing_lost(outcome)


@pytest.mark.parametrize("trouble", ["no tls", "refused", "no such host"])
def test_a_server_that_cannot_be_reached_costs_no_more(
    endpoint: str, direct: S3Store, tmp_path: Path, trouble: str
) -> None:
    urls = {
        "no tls": endpoint.replace("http:", "https:"),
        "refused": f"http://127.0.0.1:{free_port()}",
        "no such host": "http://cache.invalid",
    }
    place = Place(direct, "unreached/" + trouble.replace(" ", "-"), tmp_path)
    place.fill()
    outcome = place.run(over(urls[trouble]), BUDGET, lambda: 1)
    assert_in_time(outcome)
    assert outcome.misses == {"store-unavailable": 2}
    assert not outcome.published
    assert_nothing_lost(outcome)


def test_a_token_that_expires_is_told_once_and_not_tried_again(
    endpoint: str, direct: S3Store, tmp_path: Path
) -> None:
    place = Place(direct, "expired", tmp_path)
    outcome = spoilt_run(endpoint, place, "400 expired", "put", budget=PATIENT)
    assert outcome.met == 1
    assert outcome.notes[0] == (
        "cache: s3://tuning: ExpiredToken; to write is not tried again in this run"
    )
