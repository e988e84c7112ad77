import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.house.sources import ROOT
from tests.support.git_repository import Checkout, clone, new_repository
from tests.support.programs import run_program
from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.system.git.compared_revisions import GitHistory
from tunegate.system.git.installed_commit import InstalledCommit, installed_commit

PUBLIC = "https://github.com/tunegate/tunegate"
COMMIT = "1234567890abcdef1234567890abcdef12345678"
ASK = """
import msgspec
from tunegate.system.git.installed_commit import installed_commit
found = installed_commit()
print(msgspec.json.encode(found).decode() if found else "nobody knows")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(directory), versions=["standard"])
    return Path(made)


def test_an_editable_installation_is_the_commit_of_its_checkout() -> None:
    asked = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True)
    assert installed_commit() == InstalledCommit(source=PUBLIC, commit=asked.strip())


@pytest.mark.parametrize(
    ("stamp", "origin", "expected"),
    [
        (f"v1.2.3 {COMMIT}\n", {}, {"source": PUBLIC, "commit": COMMIT, "release": "v1.2.3"}),
        ("v1.2.3\n", {}, None),
        ("unreleased\n", {}, None),
        (
            "unreleased\n",
            {
                "url": "https://user:secret@example.com/o/n.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT, "requested_revision": "main"},
            },
            {"source": "https://example.com/o/n", "commit": COMMIT, "release": ""},
        ),
        (
            "unreleased\n",
            {"url": "ssh://git@example.com/o/n", "vcs_info": {"commit_id": COMMIT}},
            None,
        ),
        ("unreleased\n", {"url": "file:///gone", "dir_info": {"editable": True}}, None),
        ("unreleased\n", {"url": "file:///gone", "dir_info": {}}, None),
    ],
)
def test_an_installation_is_what_its_distribution_says(
    stamp: str,
    origin: dict[str, object],
    expected: dict[str, str] | None,
    wheel: Path,
    tmp_path: Path,
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    (tmp_path / "tunegate" / "released.txt").write_text(stamp)
    (metadata,) = tmp_path.glob("*.dist-info")
    (metadata / "direct_url.json").write_text(json.dumps(origin))
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}){ASK}"
    done = run_program([sys.executable, "-I", "-c", script], check=True)
    assert done.stdout.strip() == (
        json.dumps(expected, separators=(",", ":")) if expected else "nobody knows"
    )


def test_the_repository_is_the_path_of_its_address() -> None:
    found = InstalledCommit(source="https://example.com/owner/name", commit=COMMIT)
    assert found.repository == "owner/name"


# The release before a commit, in real repositories.


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    """A repository with v1, a commit, v2 with a note, and two commits after it; a tag of
    something else is on the first."""
    checkout = new_repository(tmp_path / "origin")
    for message in ("one", "between", "two", "after", "last"):
        checkout.commit({"file": message.encode()}, message)
        if message == "one":
            checkout.git("tag", "v1")
        if message == "two":
            checkout.git("tag", "-a", "-m", "the second", "v2")
        if message == "after":
            checkout.git("tag", "nightly")
    return checkout


@pytest.mark.parametrize("odd", ["v0\u00a09", "v0\u2028a", "v0\x85", "v0\udcff"])
def test_a_release_itself_is_compared_with_the_one_before_whatever_other_tags_are_called(
    origin: Checkout, odd: str
) -> None:
    origin.git("tag", odd, "v1~0")
    assert GitHistory(origin.path).since_release("v2", "v*").release == "v1"
    cloned = GitHistory(origin.clone("--depth=1").path)
    assert cloned.since_release(None, odd).release == odd.replace("\udcff", "\\xff")


def test_a_checkout_of_ci_has_neither_tags_nor_history_and_gets_them(
    origin: Checkout, tmp_path: Path
) -> None:
    shallow = clone(origin, tmp_path / "clone", "--depth=1", "--no-tags")
    assert shallow.git("tag") == ""
    assert GitHistory(shallow.path).since_release(None, "v*").release == "v2"
    assert "nightly" not in shallow.git("tag")


def test_a_hotfix_that_was_merged_back_is_older_than_the_release_after_it(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    project.commit({"file": b"1"})
    project.git("tag", "v1.0.0")
    project.commit({"file": b"2"})
    project.git("tag", "-a", "-m", "next", "v1.1.0")
    project.git("checkout", "-q", "-b", "hotfix", "v1.0.0")
    project.commit({"fix": b"1"})
    project.git("tag", "-a", "-m", "later", "v1.0.1")
    project.git("checkout", "-q", "main")
    project.merge("hotfix")
    assert GitHistory(project.path).since_release(None, "v*").release == "v1.1.0"
    assert GitHistory(project.path).since_release("hotfix", "v*").release == "v1.0.0"


@pytest.mark.parametrize(
    ("pattern", "release"),
    [("v*", "v1.0"), ("v*-rc*", "v1.1.0-rc.10"), ("v*a*", "v1.1a3"), ("v*b*", "v1.1b2")],
)
def test_a_candidate_counts_where_it_is_named(tmp_path: Path, pattern: str, release: str) -> None:
    project = new_repository(tmp_path / "project")
    project.commit({"file": b"1"})
    project.git("tag", "v1.0")
    candidates = ("v1.1a3", "v1.1b2", "v1.1-SNAPSHOT", "v1.1.0-rc.10", "v1.1.0-rc.2", "v1.2-next.9")
    for tag in candidates:
        project.commit({"file": tag.encode()})
        project.git("tag", tag)
    project.commit({"file": b"last"})
    assert GitHistory(project.path).since_release(None, pattern).release == release


def test_a_commit_with_several_tags_is_known_by_the_release(origin: Checkout) -> None:
    for tag in ("v3.0.0", "v3.0.0-rc.1", "v2.9"):
        origin.git("tag", tag)
    history = GitHistory(origin.path)
    assert history.release(history.head()) == "v3.0.0"


def test_without_a_release_one_line_says_what_to_do(origin: Checkout) -> None:
    with pytest.raises(RevisionError) as raised:
        GitHistory(origin.path).since_release(None, "release-*")
    assert str(raised.value) == (
        f"--since-release: no commit before {origin.git('rev-parse', 'HEAD')[:12]} has a tag "
        "release-*, and a first release has nothing before it. gate.release-tags says what they "
        "are called."
    )
    origin.git("remote", "add", "origin", "file:///nowhere")
    with pytest.raises(EnvironmentUnfitError, match=r"tags release-\* could not be fetched"):
        GitHistory(origin.path).since_release(None, "release-*")


def test_the_rules_are_those_of_the_newest_commit_that_is_merged(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    assert history.merged_before(None) == origin.git("rev-parse", "main")
    assert history.merged_before("v1") == origin.git("rev-parse", "v1")
    origin.git("checkout", "-q", "-b", "fix", "v1")
    head = origin.commit({"fix": b"1"}, "fix")
    assert history.merged_before(head) == origin.git("rev-parse", "v1")


def test_without_a_default_branch_nothing_is_merged(tmp_path: Path) -> None:
    alone = new_repository(tmp_path / "alone", "work")
    alone.commit({"file": b"1"})
    alone.git("branch", "other")
    assert GitHistory(alone.path).merged_before(None) is None
