from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ci.gitlab.test_event import BRANCH, REQUEST
from tests.support.host_events import require_sound_events
from tunegate.artifacts.changes import Revisions
from tunegate.ci import events
from tunegate.ci.gitlab.event import gitlab_event
from tunegate.ci.job import event_words
from tunegate.ci.protocol import AskedRevisions, JobEvent, JobRequest, StepName, Usual
from tunegate.cli.parse import parse
from tunegate.errors import ConfigError
from tunegate.settings import Settings

HEAD = "a" * 40
OF_GITLAB = {
    "pull-request": REQUEST,
    "fork": {**REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "4"},
    "branch": {**BRANCH, "CI_PIPELINE_SOURCE": "push"},
}


@pytest.mark.parametrize("dump", OF_GITLAB)
def test_whatever_the_variables_say_a_job_is_refused_or_one_of_its_kind(dump: str) -> None:
    require_sound_events(gitlab_event, OF_GITLAB[dump])


NOTHING = events.RefusedEvent("it changes nothing", "Use push.")
TABLE: events.EventTable = {
    "push": events.JudgedEvent(base="before", head="after", writes="main"),
    "star": NOTHING,
    "watch": NOTHING,
}


def test_an_unknown_event_is_not_guessed_at() -> None:
    said = events.event_refusal(TABLE, "moon", "Use push.")
    assert said == "event moon: it is not one that tunegate knows. Use push."


REVISIONS = Revisions(base="b" * 40, head="a" * 40)
PULL = JobEvent(revisions=Usual(), zone="pr/o/r/7")
STEPS: tuple[StepName, ...] = ("run", "plan", "tune", "gate", "measure", "verdict")


def settings(
    step: StepName,
    revisions: Revisions | None,
    event: JobEvent = PULL,
    asked: AskedRevisions | None = None,
) -> Settings:
    request = JobRequest(words=(step,), step=step, out=Path(), asked=asked or AskedRevisions())
    parsed = parse([step, *event_words(request, event, revisions)])
    assert parsed is not None
    return parsed.options.settings


def test_a_whole_run_takes_both_revisions_and_the_zone() -> None:
    found = settings("run", REVISIONS)
    assert (found.base, found.head) == ("b" * 40, "a" * 40)
    assert found.overrides.get("cache.zone") == "pr/o/r/7"


def test_every_step_names_the_policy_and_the_later_ones_refuse_a_plan_of_another() -> None:
    behind = msgspec.structs.replace(REVISIONS, policy="c" * 40)
    for step in STEPS:
        assert settings(step, behind).policy == "c" * 40


def test_a_pull_request_writes_to_its_own_zone_in_every_step() -> None:
    for step in STEPS:
        assert settings(step, REVISIONS).overrides.get("cache.zone") == "pr/o/r/7"


@pytest.mark.parametrize("step", STEPS)
def test_a_fork_only_reads(step: StepName) -> None:
    found = settings(step, REVISIONS, JobEvent(revisions=Usual(), zone=None))
    assert (found.overrides.get("cache.mode"), found.overrides.get("cache.zone")) == ("ro", None)


@pytest.mark.parametrize("step", ["tune", "gate"])
def test_a_later_job_refuses_a_plan_of_other_revisions(step: StepName) -> None:
    found = settings(step, REVISIONS)
    assert (found.base, found.head) == (REVISIONS.base, REVISIONS.head)
    assert settings(step, None, asked=AskedRevisions(head="topic")).head == "topic"


def test_since_a_release_the_command_finds_the_base() -> None:
    asked = AskedRevisions(since_release=True, head="topic")
    found = settings("run", None, asked=asked)
    assert (found.since_release, found.base, found.head) == (True, None, "topic")
    for step in ("tune", "gate"):
        request = JobRequest(words=(), step=step, out=Path(), asked=asked)
        assert "--since-release" not in event_words(request, PULL, None)


def test_no_base_leaves_the_choice_to_the_command_only_when_there_is_none() -> None:
    request = JobRequest(words=(), step="run", out=Path())
    words = event_words(request, PULL, Revisions(base=None, head="a" * 40))
    assert not [word for word in words if word.startswith("--base")]
    assert "--no-base" in words


def test_a_policy_and_a_zone_that_are_asked_for_stay_but_a_fork_never_writes() -> None:
    request = JobRequest(words=(), step="run", out=Path(), policy="p", zone="team/x")
    behind = msgspec.structs.replace(REVISIONS, policy="c" * 40)
    words = event_words(request, PULL, behind)
    assert "--policy=p" in words
    assert "--zone=team/x" in words
    fork = JobEvent(revisions=Usual(), zone=None)
    assert event_words(request, fork, behind)[-1] == "--cache-mode=ro"
    without = msgspec.structs.replace(request, is_without_cache=True)
    assert not [word for word in event_words(without, fork, behind) if "cache" in word]


@pytest.mark.parametrize("text", ["0", "007", "-1", "1.5", "٣", "1 2", "true", "9" * 20])
def test_what_is_no_number_is_none(text: str) -> None:
    job = events.JobVariables({"A": text})
    assert job.number("A") is None
    with pytest.raises(ConfigError, match="A is not a number"):
        job.required_number("A")


@given(st.text(max_size=70))
def test_a_commit_is_whole_or_refused(text: str) -> None:
    found = events.JobVariables({"A": text}).commit_or_none("A")
    assert found is None or (len(found) in {40, 64} and set(found) <= set("0123456789abcdef"))


def test_a_branch_has_its_short_name() -> None:
    job = events.JobVariables({"A": "refs/heads/release/2", "TUNEGATE_DEFAULT_BRANCH": "trunk"})
    assert (job.branch("A"), job.default_branch()) == ("release/2", "trunk")
