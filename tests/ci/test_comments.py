from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.ci.github.github_server import github_server
from tests.support.report_parts import finding, verdict
from tests.support.reports import make_report
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.verdicts import Verdict
from tunegate.ci.comments import KeptComment, report_marker, with_links
from tunegate.ci.github.host import GitHubHost
from tunegate.ci.http import RestRefusedError
from tunegate.ci.job import check_words, comment_choice, job_in_words, report_name
from tunegate.ci.job_results import place_of
from tunegate.ci.protocol import AskedRevisions, JobEvent, JobRequest, Links, Usual
from tunegate.errors import ConfigKey
from tunegate.settings import CommentWhen

QUIET = verdict("pass", 0)
CHANGED = verdict("pass", 0, finding("pass", ""))
ALARM = verdict("fail", 1, finding("fail", "slower"))
LOOSENED = replace(QUIET, policy_changes=make_report("loosened").verdict.policy_changes)
NOTHING = "say that nothing changes"


@pytest.mark.parametrize(
    ("when", "quiet", "changed", "alarm", "loosened"),
    [
        ("always", "write", "write", "write", "write"),
        ("on-change", NOTHING, "write", "write", "write"),
        ("on-alert", NOTHING, "update", "write", "write"),
        ("never", "leave", "leave", "leave", "leave"),
    ],
)
def test_a_mode_writes_what_somebody_waits_for(
    when: CommentWhen, quiet: str, changed: str, alarm: str, loosened: str
) -> None:
    cases = ((QUIET, quiet), (CHANGED, changed), (ALARM, alarm), (LOOSENED, loosened))
    for found, wanted in cases:
        assert comment_choice(when, found, 0) == wanted


@pytest.mark.parametrize("status", ["inconclusive", "error", "invalid-env", "no-baseline"])
def test_what_blocks_a_merge_is_an_alert(status: str) -> None:
    blocked: Verdict = replace(ALARM, status=status, exit_code=3)
    assert comment_choice("on-alert", blocked, 0) == "write"


def test_a_comment_names_its_job_as_text_whatever_that_is_called() -> None:
    text = with_links("# Pass\n", Links(run="https://ci/1"), job="gate (cpu)")
    assert text == "# Pass\n\nJob `gate (cpu)` · [This run](https://ci/1)\n"
    hostile = with_links("# Pass\n", Links(), job="`[x](https://evil) <b>")
    assert "[x](" not in hostile
    assert "<b>" not in hostile


def test_a_comment_links_the_commits_that_it_compares() -> None:
    revisions = Revisions(base="a" * 40, head="b" * 40)
    text = with_links("# Pass\n", Links(commit="https://ci/commit/"), revisions)
    assert f"[base aaaaaaa](https://ci/commit/{'a' * 40})" in text
    assert f"[head bbbbbbb](https://ci/commit/{'b' * 40})" in text


@pytest.mark.parametrize("base", [None, "main) [x](https://evil", "A" * 40])
def test_what_is_no_commit_is_not_linked(base: str | None) -> None:
    text = with_links(
        "# Pass\n", Links(commit="https://ci/commit/"), Revisions(base=base, head="b")
    )
    assert text == "# Pass\n"


class Thread:
    """Comments in memory; what is planned happens to the next write."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.planned: list[tuple[RestRefusedError, bool]] = []
        self.written = 0

    def find_own_comment(self) -> int | None:
        return next(iter(self.texts), None)

    def write(self, text: str) -> None:
        self.written += 1
        error, is_done = self.planned.pop(0) if self.planned else (None, True)
        if is_done:
            self.texts[len(self.texts)] = text
        if error is not None:
            raise error

    def rewrite(self, known: int, text: str) -> None:
        if known not in self.texts:
            raise RestRefusedError("gone", 404)
        self.texts[known] = text


LOST = RestRefusedError("lost", may_be_done=True)


def test_the_first_one_is_written_and_later_ones_replace_it() -> None:
    thread = Thread()
    for text in ("first", "second"):
        KeptComment(thread).publish(text)
    assert (thread.texts, thread.written) == ({0: "second"}, 1)


@pytest.mark.parametrize("is_done", [True, False])
def test_after_a_lost_answer_there_is_one_comment(is_done: bool) -> None:
    thread = Thread()
    thread.planned = [(LOST, is_done)]
    KeptComment(thread).publish("text")
    assert thread.texts == {0: "text"}
    assert thread.written == (1 if is_done else 2)


def test_only_a_comment_that_is_gone_is_written_anew() -> None:
    class Refusing(Thread):
        def rewrite(self, known: int, text: str) -> None:
            raise RestRefusedError("no", 403)

    thread = Refusing()
    thread.texts = {0: "old"}
    with pytest.raises(RestRefusedError, match="no"):
        KeptComment(thread).publish("text")
    assert thread.written == 0


def test_reports_of_two_directories_have_two_markers() -> None:
    assert report_marker(".tunegate") == "<!-- tunegate:report .tunegate -->"
    assert report_marker("a") != report_marker("b")


# The name by which a job finds its own comment.

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_WORKFLOW_REF": "acme/models/.github/workflows/gate.yml@refs/pull/7/merge",
    "GITHUB_JOB": "gate",
}
BOTH = AskedRevisions(base="main", head="HEAD")


def request_of(config: str = "tunegate.yaml", repository: str = ".") -> JobRequest:
    return JobRequest(
        words=(),
        step="run",
        out=Path(".tunegate"),
        repository=Path(repository),
        config=Path(config),
    )


def event_of(**more: str) -> JobEvent:
    return GitHubHost({**GITHUB, **more}).event(BOTH)


@pytest.mark.parametrize(
    "other",
    [
        {"GITHUB_JOB": "gate-gpu"},
        {"GITHUB_WORKFLOW_REF": "acme/models/.github/workflows/other.yml@refs/pull/7/merge"},
        {"TUNEGATE_MATRIX": '{"target": "gpu"}'},
    ],
)
def test_two_jobs_keep_two_comments_and_a_pass_never_replaces_a_fail(other: dict[str, str]) -> None:
    with github_server() as server:
        for more, text in (({}, "Fail"), (other, "Pass"), (other, "Pass again"), ({}, "Fail")):
            host = GitHubHost({**server.variables, "TUNEGATE_GITHUB_TOKEN": "t"})
            event = JobEvent(
                revisions=Usual(),
                pull_request=7,
                job=event_of(**more).job,
                matrix=event_of(**more).matrix,
            )
            host.comment(event, report_name(request_of(), event), text)
        texts = [each["body"].partition("\n")[2] for each in server.comments]
    assert texts == ["Fail", "Pass again"]


def test_a_runner_that_keeps_the_checkout_elsewhere_finds_the_same_comment() -> None:
    one, other = (
        replace(
            request_of(f"/runner/{number}/models/a/t.yaml", f"/runner/{number}/models"),
            out=Path(f"/runner/{number}/models/a/results"),
        )
        for number in (1, 2)
    )
    assert report_name(one, event_of()) == report_name(other, event_of())
    assert check_words(one, event_of()).endswith(" gate, a/t.yaml, a/results")
    beside = request_of("models/tunegate.yaml", "models")  # its output is beside the checkout
    assert check_words(beside, event_of()) == "gate.yml gate"


@pytest.mark.parametrize("target", ["tunegate.yaml", "other.yaml"])
def test_a_head_that_links_its_configuration_keeps_its_comment(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = report_name(request_of(), event_of())
    Path("tunegate.yaml").symlink_to(target)
    assert report_name(request_of(), event_of()) == before
    assert place_of(ConfigKey("tunegate.yaml", "gate"), Path()) is None


def test_people_read_which_job_it_is() -> None:
    event = event_of(TUNEGATE_MATRIX='{"target": "a100", "threads": 4, "of": [1, 2]}')
    assert job_in_words(request_of(), event) == "gate.yml gate (a100, 4, [1, 2])"
    assert job_in_words(request_of("a/t.yaml"), event_of()) == "gate.yml gate, a/t.yaml"
    assert check_words(request_of("a/t.yaml"), event) == "gate.yml gate, a100, 4, [1, 2], a/t.yaml"
    assert check_words(request_of(), event_of()) == "gate.yml gate"


@pytest.mark.parametrize("matrix", ["", "null", "{}", "{", "[" * 100_000, "7"])
def test_a_job_without_a_matrix_has_none(matrix: str) -> None:
    assert event_of(TUNEGATE_MATRIX=matrix).matrix == ""
