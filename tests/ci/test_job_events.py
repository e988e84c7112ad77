from __future__ import annotations

import pytest

from tests.ci.gitlab.test_event import BRANCH, REQUEST
from tests.support.host_events import require_named_revisions_only_read, require_sound_events
from tunegate.ci.events import as_asked, of_branch
from tunegate.ci.gitlab.event import gitlab_event
from tunegate.ci.protocol import AskedRevisions, Usual

HEAD = "a" * 40
OF_GITLAB = {
    "pull-request": REQUEST,
    "fork": {**REQUEST, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "4"},
    "branch": {**BRANCH, "CI_PIPELINE_SOURCE": "push"},
}


@pytest.mark.parametrize("dump", OF_GITLAB)
def test_whatever_the_variables_say_a_job_is_refused_or_one_of_its_kind(dump: str) -> None:
    require_sound_events(gitlab_event, OF_GITLAB[dump])


@pytest.mark.parametrize("dump", OF_GITLAB)
def test_whoever_names_both_revisions_only_reads(dump: str) -> None:
    require_named_revisions_only_read(gitlab_event, OF_GITLAB[dump], is_request=dump != "branch")


def test_a_tip_belongs_to_a_pull_request() -> None:
    assert as_asked(7, HEAD).tip == HEAD
    assert as_asked(None, HEAD).tip == ""


def test_a_head_that_somebody_names_does_not_teach_main() -> None:
    asked = AskedRevisions(head=HEAD)
    assert of_branch(asked, HEAD, Usual(), "main").zone is None
    assert of_branch(asked, HEAD, Usual(), "pr/a/branch_x").zone == "pr/a/branch_x"
    assert of_branch(AskedRevisions(), HEAD, Usual(), "main").zone == "main"
