from pathlib import Path

import pytest

from tests.ci.gitlab.gitlab_server import merge_request
from tunegate.ci.events import RefusedEvent
from tunegate.ci.gitlab.event import GITLAB_EVENTS, gitlab_event
from tunegate.ci.protocol import AskedRevisions, JobEvent, MergeBase, Push, Usual
from tunegate.errors import ConfigError

BASE, HEAD, ZEROS = "b" * 40, "a" * 40, "0" * 40
BRANCH = {
    "CI_PROJECT_PATH": "acme/vision/models",
    "CI_PROJECT_ID": "3",
    "CI_COMMIT_SHA": HEAD,
    "CI_COMMIT_BRANCH": "trunk",
    "CI_DEFAULT_BRANCH": "trunk",
    "CI_COMMIT_BEFORE_SHA": BASE,
}
REQUEST = merge_request(
    CI_PROJECT_PATH="acme/vision/models",
    CI_COMMIT_SHA=HEAD,
    CI_COMMIT_BEFORE_SHA=ZEROS,
    CI_DEFAULT_BRANCH="trunk",
    CI_MERGE_REQUEST_EVENT_TYPE="detached",
    CI_MERGE_REQUEST_TARGET_BRANCH_NAME="release/2",
    CI_MERGE_REQUEST_TARGET_BRANCH_SHA="",
    CI_MERGE_REQUEST_DIFF_BASE_SHA=BASE,
)


def request(**more: str) -> JobEvent:
    return gitlab_event({**REQUEST, **more}, AskedRevisions())


def of_branch(source: str, asked: AskedRevisions | None = None, **more: str) -> JobEvent:
    return gitlab_event({**BRANCH, "CI_PIPELINE_SOURCE": source, **more}, asked or AskedRevisions())


def test_a_merge_request_is_compared_with_its_target_branch_of_today() -> None:
    found = request()
    assert found.revisions == MergeBase(target="release/2")
    assert (found.checked_out, found.tip, found.pull_request) == (HEAD, HEAD, 7)
    assert found.zone == "pr/acme/vision/models/7"


@pytest.mark.parametrize("kind", ["merged_result", "merge_train"])
def test_a_merged_result_is_compared_with_what_it_was_merged_onto(kind: str) -> None:
    found = request(CI_MERGE_REQUEST_EVENT_TYPE=kind, CI_MERGE_REQUEST_TARGET_BRANCH_SHA="c" * 40)
    assert found.revisions == MergeBase(target="c" * 40)
    assert (found.checked_out, found.zone) == (HEAD, "pr/acme/vision/models/7")


@pytest.mark.parametrize("source", ["4", ""])
def test_a_fork_writes_nothing(source: str) -> None:
    assert request(CI_MERGE_REQUEST_SOURCE_PROJECT_ID=source).zone is None


def test_a_pipeline_in_the_project_of_a_fork_does_not_ask_for_its_target_branch() -> None:
    found = request(CI_PROJECT_ID="4", CI_MERGE_REQUEST_SOURCE_PROJECT_ID="4")
    assert (found.revisions, found.zone) == (MergeBase(target=BASE), None)


def test_a_child_pipeline_is_about_what_its_parent_is_about() -> None:
    assert request(CI_PIPELINE_SOURCE="parent_pipeline") == request()
    of_a_branch = of_branch("parent_pipeline")
    expected = (Usual(default_branch="trunk", is_on_it=True), "main")
    assert (of_a_branch.revisions, of_a_branch.zone) == expected


@pytest.mark.parametrize("before", [BASE, ZEROS])
def test_a_push_says_what_was_before_and_zeros_where_nothing_was(before: str) -> None:
    found = of_branch("push", CI_COMMIT_BEFORE_SHA=before)
    assert found.revisions == Push(
        before=before, after=HEAD, default_branch="trunk", is_default=True
    )
    assert (found.checked_out, found.zone, found.pull_request) == (HEAD, "main", None)


@pytest.mark.parametrize("source", ["schedule", "web", "api", "trigger", "pipeline"])
def test_what_is_started_on_a_branch_has_no_commit_before(source: str) -> None:
    found = of_branch(source, CI_COMMIT_BEFORE_SHA=ZEROS)
    assert found.revisions == Usual(default_branch="trunk", is_on_it=True)
    assert (found.checked_out, found.zone) == (HEAD, "main")


def test_a_tag_is_compared_with_the_release_before_or_not_at_all() -> None:
    with pytest.raises(ConfigError, match="a tag says nothing of what to compare with"):
        of_branch("push", CI_COMMIT_BRANCH="", CI_COMMIT_TAG="v2")
    found = of_branch(
        "push", AskedRevisions(since_release=True), CI_COMMIT_BRANCH="", CI_COMMIT_TAG="v2"
    )
    assert (found.revisions, found.checked_out, found.zone) == (Usual(), HEAD, None)


def test_a_head_that_somebody_names_does_not_teach_main() -> None:
    asked = AskedRevisions(head="c" * 40)
    assert of_branch("push", asked).zone is None
    assert of_branch("push", asked, CI_COMMIT_BRANCH="x").zone == "pr/acme/vision/models/branch_x"


@pytest.mark.parametrize(
    "more",
    [
        {"CI_COMMIT_SHA": "main"},
        {"CI_COMMIT_SHA": ""},
        {"CI_MERGE_REQUEST_IID": "../7"},
        {"CI_MERGE_REQUEST_IID": ""},
        {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": ""},
        {"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "--upload-pack=x"},
        {"CI_PROJECT_PATH": "acme/../other"},
        {"CI_PROJECT_PATH": ""},
        {"CI_PROJECT_ID": "9", "CI_MERGE_REQUEST_DIFF_BASE_SHA": ""},
    ],
)
def test_variables_that_lack_something_are_refused(more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="the job cannot be used"):
        request(**more)


REFUSED = [name for name, row in GITLAB_EVENTS.items() if isinstance(row, RefusedEvent)]


@pytest.mark.parametrize("source", [*REFUSED, "", "invented"])
def test_a_source_that_compares_nothing_is_refused_with_what_to_use_instead(source: str) -> None:
    with pytest.raises(ConfigError, match=r"(Use|Run|name) .*\w") as caught:
        request(CI_PIPELINE_SOURCE=source)
    assert caught.value.exit_code == 2


PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "gitlab.md"
OF_GITLAB = """
api chat external external_pull_request_event merge_request_event ondemand_dast_scan trigger
ondemand_dast_validation parent_pipeline pipeline push schedule security_orchestration_policy
web webide
"""


def test_the_table_has_every_source_of_gitlab() -> None:
    assert set(GITLAB_EVENTS) == set(OF_GITLAB.split())


def test_every_event_is_on_the_page() -> None:
    page = PAGE.read_text()
    assert [name for name in GITLAB_EVENTS if f"`{name}`" not in page] == []
