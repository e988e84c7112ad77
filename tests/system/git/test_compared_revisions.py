"""Base and head without an event, in real repositories and real shallow clones of them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repository import Checkout, commit_of, new_repository, two_branches
from tunegate.errors import EnvironmentUnfitError, RevisionError
from tunegate.system.git.compared_revisions import GitHistory, name_of_remote
from tunegate.system.git.named_revision import (
    default_branch,
    fetch_if_branch,
    known_default_branch,
    named_branches,
    named_commit,
    short_name,
)
from tunegate.system.git.process import GitProcess
from tunegate.system.git.repository import GitRepository


@pytest.fixture
def origin(tmp_path: Path) -> Checkout:
    return two_branches(tmp_path / "origin")


def test_a_base_that_is_one_commit_is_taken_literally(origin: Checkout) -> None:
    topic = commit_of(origin, "topic")
    for base in (topic, topic[:10], "HEAD", "topic~0", "refs/heads/main^{commit}"):
        found = GitHistory(origin.path).revisions(base, "main~1")
        assert found.base == commit_of(origin, base)
        assert found.head == commit_of(origin, "main~1")
        assert (found.reason, found.policy) == ("given by --base", "")


def test_a_base_of_zeros_is_none_that_is_named(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    assert history.revisions("0" * 40, "topic") == history.revisions(None, "topic")


def test_without_a_base_there_is_the_head_alone(origin: Checkout) -> None:
    found = GitHistory(origin.path).revisions_without_base("topic")
    assert (found.base, found.head) == (None, commit_of(origin, "topic"))


def test_of_a_branch_here_and_at_the_remote_the_head_left_the_nearer_one(origin: Checkout) -> None:
    here = origin.clone()
    origin.commit({"readme": b"third"})
    here.git("fetch", "-q", "origin")
    here.git("checkout", "-q", "-b", "mine", "origin/main")
    here.commit({"c": b"c"})
    found = GitHistory(here.path).revisions("main", None)
    assert (found.base, found.reason) == (
        commit_of(origin, "main"),
        "--base main is origin/main here, which the head left last: merge base with origin/main",
    )
    named = GitHistory(here.path).revisions("origin/main", None)
    assert (named.base, named.reason) == (found.base, "merge base with origin/main")
    unpushed = here.commit({"d": b"d"})
    here.git("branch", "-f", "main", unpushed)
    here.commit({"e": b"e"})
    assert GitHistory(here.path).revisions("main", None).base == unpushed


def test_a_branch_or_tag_that_a_checkout_lacks_is_fetched(origin: Checkout) -> None:
    origin.git("tag", "v1", "main~1")
    for base in ("main", "origin/main", "refs/heads/main", "v1"):
        here = origin.job("topic")
        assert GitHistory(here.path).revisions(base, None).base == commit_of(origin, "main~1")


def test_a_whole_id_that_a_checkout_lacks_is_fetched_also_as_the_head(origin: Checkout) -> None:
    here = origin.job("main")
    base, head = commit_of(origin, "main~1"), commit_of(origin, "topic")
    found = GitHistory(here.path).revisions(base, head)
    assert (found.base, found.head) == (base, head)


def test_a_short_id_that_a_checkout_lacks_cannot_be_fetched(origin: Checkout) -> None:
    here = origin.job("main")
    with pytest.raises(RevisionError, match=r"Only a commit's whole id can be fetched\.$"):
        GitHistory(here.path).revisions(commit_of(origin, "main~1")[:12], None)


def test_a_tag_of_a_branch_s_name_does_not_choose_the_base(origin: Checkout) -> None:
    origin.git("tag", "main", "main~1")
    with pytest.raises(RevisionError, match='"main" is a branch and a tag, of different commits'):
        GitHistory(origin.path).revisions("main", None)
    found = GitHistory(origin.path).revisions("refs/tags/main", None)
    assert found.base == commit_of(origin, "refs/heads/main~1")


@pytest.mark.parametrize(
    "revision", ["no-such", "", "--all", "^main", "HEAD:a.onnx", "f" * 40, "a b\nc"]
)
def test_a_base_that_does_not_exist_is_one_clear_line(origin: Checkout, revision: str) -> None:
    with pytest.raises(RevisionError) as raised:
        GitHistory(origin.path).revisions(revision, None)
    assert str(raised.value) == (
        f'--base: "{revision}" is not a revision of {origin.path}. Name a commit, branch or '
        f"tag that is here, or fetch it."
    )


def test_a_head_that_does_not_exist_names_its_option(origin: Checkout) -> None:
    with pytest.raises(RevisionError, match=r'^--head: "no-such" is not a revision of'):
        GitHistory(origin.path).revisions(None, "no-such")


def test_an_older_commit_of_the_default_branch_has_its_parent_too(origin: Checkout) -> None:
    origin.commit({"readme": b"third"})
    assert GitHistory(origin.path).revisions(None, "main~1").base == commit_of(origin, "main~2")


def test_a_shallow_clone_that_cannot_walk_to_the_merge_base_deepens(origin: Checkout) -> None:
    for number in range(60):
        origin.commit({"readme": str(number).encode()})
    here = origin.clone("--depth=1", "--no-single-branch", "--branch=topic")
    found = GitHistory(here.path).revisions(None, None)
    assert found.base == commit_of(origin, "main~61")
    assert found.reason == "merge base with origin/main"


def test_a_shallow_clone_without_its_remote_cannot_know_its_base(origin: Checkout) -> None:
    here = origin.clone("--depth=1", "--no-single-branch", "--branch=topic")
    origin.take_away()
    with pytest.raises(EnvironmentUnfitError, match=r"in this shallow clone.*the whole history"):
        GitHistory(here.path).revisions(None, None)


def test_a_branch_of_another_remote_is_told_to_be_as_it_is_here(origin: Checkout) -> None:
    here = origin.clone("--branch=topic")
    here.git("remote", "rename", "origin", "upstream")
    here.git("remote", "add", "fork", "file:///nowhere")
    found = GitHistory(here.path).revisions("upstream/main", None)
    old = "merge base with upstream/main, as this clone has it: of remotes, only origin is asked"
    assert (found.base, found.reason) == (commit_of(origin, "main~1"), old)


def test_a_release_is_the_latest_tag_of_a_commit(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    head = commit_of(origin, "main")
    assert history.release(head) == ""
    assert history.release("") == ""
    for tag, name in (("v1\u2028x", "v1\u2028x"), ("v2-\udcff", "v2-\\xff"), ("v3.0", "v3.0")):
        origin.git("tag", tag, head)
        assert history.release(head) == name
    assert history.release(commit_of(origin, "topic")) == ""


def test_the_change_before_the_last_one_is_counted_along_first_parents(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    assert history.before_last_change(commit_of(origin, "main"), "a.onnx") is None
    origin.commit({"a.onnx": b"2" * 2000}, "again")
    origin.commit({"readme": b"third"}, "third")
    found = history.before_last_change(commit_of(origin, "main"), "a.onnx", "a.onnx.dvc")
    assert found == (commit_of(origin, "main~3"), 3)
    assert history.before_last_change(commit_of(origin, "main"), "*.onnx") is None


def test_what_is_not_committed_is_named_whatever_it_is_called(origin: Checkout) -> None:
    history = GitHistory(origin.path)
    assert history.uncommitted_paths() == ()
    (origin.path / "a.onnx").write_bytes(b"changed")
    for name in (b"a b.onnx", b"b\xff.onnx"):
        Path(os.fsdecode(bytes(origin.path / "") + b"/" + name)).write_bytes(b"new")
    assert sorted(history.uncommitted_paths()) == ["a b.onnx", "a.onnx", "b\\xff.onnx"]


@pytest.mark.parametrize("depth", ["", "--depth=1"])
def test_the_commits_between_two_are_those_along_first_parents(tmp_path: Path, depth: str) -> None:
    """A merge stands for what it brought; a shallow clone fetches what it lacks."""
    origin = new_repository(tmp_path / "origin")
    good = origin.commit({"a": b"1"})
    origin.git("checkout", "-q", "-b", "side")
    origin.commit({"b": b"1"})
    origin.git("checkout", "-q", "main")
    second = origin.commit({"a": b"2"})
    origin.git("merge", "-q", "--no-edit", "side")
    merge = commit_of(origin, "HEAD")
    history = GitHistory(origin.clone(*filter(None, [depth])).path)
    assert history.resolve_commit(good, "GOOD") == good
    assert history.commits_between(good, merge) == (second, merge)
    assert history.subject(merge).startswith("Merge")
    with pytest.raises(RevisionError, match="no ancestor"):
        history.commits_between(merge, good)


def name_of(checkout: Checkout) -> str:
    return default_branch(GitProcess(checkout.path))


def test_an_old_clone_believes_no_branch_that_the_remote_lacks(origin: Checkout) -> None:
    origin.git("branch", "-m", "main", "master")
    here = origin.clone()
    assert name_of(here) == "refs/remotes/origin/master"
    origin.git("branch", "-m", "master", "main")
    here.git("fetch", "-q", "origin")
    assert here.git("symbolic-ref", "refs/remotes/origin/HEAD") == "refs/remotes/origin/master"
    assert name_of(here) == "refs/remotes/origin/main"


def test_a_remote_with_another_default_branch_is_believed_on_it(origin: Checkout) -> None:
    here = origin.clone()
    for name in ("trunk", "a\u00a0b", "a\u2028b"):
        origin.git("checkout", "-q", "-b", name)
        assert name_of(here) == f"refs/remotes/origin/{name}"


def test_a_branch_that_was_told_is_not_believed_where_the_remote_has_neither_it_nor_a_default(
    origin: Checkout,
) -> None:
    here = origin.clone()
    origin.git("branch", "-m", "main", "master")
    origin.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    here.git("fetch", "-q", "--prune", "origin")
    assert name_of(here) == "refs/remotes/origin/master"


def test_a_remote_without_a_default_that_has_the_branch_confirms_it(origin: Checkout) -> None:
    origin.git("branch", "-m", "main", "trunk")
    here = origin.clone()
    origin.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    assert name_of(here) == "refs/remotes/origin/trunk"


def test_two_usual_names_are_refused_where_the_remote_does_not_say_which(origin: Checkout) -> None:
    origin.git("branch", "-m", "main", "master")
    here = origin.clone()
    origin.git("branch", "-m", "master", "main")
    here.git("fetch", "-q", "origin")
    origin.take_away()
    with pytest.raises(EnvironmentUnfitError, match="origin/master or origin/main may be"):
        name_of(here)


def test_a_laptop_without_a_network_believes_what_it_was_told(origin: Checkout) -> None:
    here = origin.clone()
    origin.take_away()
    assert name_of(here) == "refs/remotes/origin/main"


@pytest.mark.parametrize("name", ["main", "master"])
def test_a_remote_that_says_none_has_one_by_its_usual_name(origin: Checkout, name: str) -> None:
    origin.git("branch", "-m", "main", name)
    here = origin.job("topic")
    origin.git("symbolic-ref", "HEAD", "refs/heads/nowhere")
    assert name_of(here) == f"refs/remotes/origin/{name}"
    assert name_of(here) == f"refs/remotes/origin/{name}"


def test_without_a_remote_the_name_is_a_usual_one_or_of_new_repositories(origin: Checkout) -> None:
    assert name_of(origin) == "refs/heads/main"
    origin.git("branch", "-m", "main", "master")
    assert name_of(origin) == "refs/heads/master"
    origin.git("branch", "-m", "master", "trunk")
    origin.git("config", "init.defaultBranch", "trunk")
    assert name_of(origin) == "refs/heads/trunk"


@pytest.mark.parametrize("name", ["trunk", "a\u00a0b"])
def test_the_only_branch_is_the_default_one_and_of_two_neither(origin: Checkout, name: str) -> None:
    origin.git("branch", "-m", "main", name)
    with pytest.raises(RevisionError, match="no branch is the default one: there is no remote"):
        name_of(origin)
    assert known_default_branch(GitProcess(origin.path)) is None
    origin.git("branch", "-q", "-D", "topic")
    assert name_of(origin) == f"refs/heads/{name}"


def test_a_remote_that_cannot_be_asked_is_not_taken_for_none(origin: Checkout) -> None:
    here = origin.job("topic")
    origin.take_away()
    with pytest.raises(EnvironmentUnfitError, match="the default branch could not be fetched"):
        name_of(here)


def test_the_name_of_the_default_branch_costs_no_fetch(origin: Checkout) -> None:
    here = origin.clone()
    origin.git("branch", "-m", "main", "trunk")
    tip = origin.commit({"large.onnx": b"1"})
    assert GitRepository(here.path).default_branch_name() == "trunk"
    assert not here.has_object(tip)


def test_people_know_a_branch_by_its_short_name() -> None:
    assert short_name("refs/remotes/origin/main") == "origin/main"
    assert short_name("refs/heads/a/b") == "a/b"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/acme/vision.git", "acme/vision"),
        ("https://x-access-token:ghs_secret@github.com/acme/vision", "acme/vision"),
        ("git@github.com:acme/vision.git", "acme/vision"),
        ("ssh://git@gitlab.example:2222/group/sub/project.git/", "group/sub/project"),
        ("https://github.com/acme/.models", "acme/.models"),
        ("git@example.com:../vision", ""),
        ("/srv/git/vision.git", ""),
        ("../vision", ""),
        ("file:///srv/git/vision.git", ""),
        ("https://example.com/", ""),
        ("https://example.com/a b<script>", ""),
        ("", ""),
    ],
)
def test_a_repository_has_the_name_of_its_path_on_the_server(address: str, name: str) -> None:
    assert name_of_remote(address) == name


@given(st.text(alphabet="abs3", min_size=12))
def test_no_secret_of_an_address_becomes_a_name(secret: str) -> None:
    assert secret not in name_of_remote(f"https://{secret}@example.com/o/n.git")


# A revision as a user names it.


@pytest.fixture
def here(origin: Checkout) -> Checkout:
    return origin.clone()


@pytest.mark.parametrize(
    ("name", "branches"),
    [
        ("main", ("refs/heads/main", "refs/remotes/origin/main")),
        ("topic", ("refs/remotes/origin/topic",)),
        ("origin/topic", ("refs/remotes/origin/topic",)),
        ("refs/heads/main", ("refs/heads/main",)),
        ("origin", ("refs/remotes/origin/main",)),
        ("@{u}", ("refs/remotes/origin/main",)),
        ("HEAD", ()),
        ("main~1", ()),
        ("v1", ()),
        ("-all", ()),
        ("", ()),
    ],
)
def test_a_branch_is_no_commit(here: Checkout, name: str, branches: tuple[str, ...]) -> None:
    here.git("tag", "v1", "HEAD~1")
    assert named_branches(GitProcess(here.path), name) == branches
    assert named_branches(GitProcess(here.path), commit_of(here, "HEAD")) == ()


@pytest.mark.parametrize("name", ["refs/tags/topic", "topic"])
def test_a_tag_that_the_remote_has_too_is_not_its_branch(origin: Checkout, name: str) -> None:
    origin.git("tag", "topic", "main~1")
    job = origin.job("main")
    if name.startswith("refs/"):
        assert named_commit(GitProcess(job.path), name, "--base") == commit_of(origin, "main~1")
        return
    with pytest.raises(RevisionError, match='"topic" is a branch and a tag, of different commits'):
        named_commit(GitProcess(job.path), name, "--base")


@pytest.mark.parametrize("is_fetched", [True, False])
def test_a_local_branch_called_like_one_of_the_remote_does_not_choose_the_base(
    origin: Checkout, is_fetched: bool
) -> None:
    job = origin.job("topic")
    if is_fetched:
        job.git("fetch", "-q", "origin", "main:refs/remotes/origin/main")
    job.git("checkout", "-q", "-b", "origin/main")
    with pytest.raises(RevisionError, match="local branch and one of a remote, of different com"):
        named_commit(GitProcess(job.path), "origin/main", "--base")
    for name in ("main", "refs/remotes/origin/main"):
        assert named_commit(GitProcess(job.path), name, "--base") == commit_of(origin, "main")


def test_a_branch_of_a_used_checkout_is_made_todays(origin: Checkout, here: Checkout) -> None:
    later = origin.commit({"readme": b"later"})
    for name in ("v1", later, "--all"):
        fetch_if_branch(GitProcess(here.path), name)
    assert commit_of(here, "origin/main") != later
    fetch_if_branch(GitProcess(here.path), "main")
    assert commit_of(here, "origin/main") == later


@pytest.mark.parametrize("way", ["~1", "^", "^1"])
def test_the_history_that_a_way_to_a_commit_needs_is_fetched(origin: Checkout, way: str) -> None:
    found = named_commit(GitProcess(origin.job("main").path), f"HEAD{way}", "--base")
    assert found == commit_of(origin, "main~1")


def test_a_way_that_leads_nowhere_is_no_revision(origin: Checkout) -> None:
    job = origin.job("main")
    for name in ("HEAD~99", "HEAD^7", "nothing~1", "~1"):
        with pytest.raises(RevisionError, match="is not a revision"):
            named_commit(GitProcess(job.path), name, "--base")


@pytest.mark.parametrize("kind", ["refs/", "refs/tags/", "refs/heads/", "refs/remotes/origin/"])
@pytest.mark.parametrize("way", ["", "~1", "^", "^{commit}"])
@pytest.mark.parametrize("described", ["", "v1.0-3-g"])
def test_a_reference_that_is_called_like_a_short_id_is_ambiguous(
    here: Checkout, kind: str, way: str, described: str
) -> None:
    short = f"{described}{commit_of(here, 'main')[:8]}"
    here.git("update-ref", f"{kind}{short}", commit_of(here, "origin/topic"))
    with pytest.raises(RevisionError) as raised:
        named_commit(GitProcess(here.path), f"{short}{way}", "--base")
    assert str(raised.value) == (
        f'--base: "{short}" may be a commit\'s short id, and is the name of {kind}{short}. '
        f"Name the commit's whole id, or {kind}{short}."
    )


def test_a_branch_that_counts_no_commits_is_nothing_that_git_describe_gives(here: Checkout) -> None:
    name, topic = f"area-g{commit_of(here, 'main')[:4]}", commit_of(here, "origin/topic")
    here.git("branch", name, topic)
    assert named_commit(GitProcess(here.path), name, "--base") == topic


def test_a_tag_of_the_remote_does_not_stand_for_a_commit_that_a_shallow_clone_lacks(
    origin: Checkout,
) -> None:
    short = commit_of(origin, "main~1")[:8]
    origin.git("tag", short, "topic")
    job = origin.job("main")
    with pytest.raises(RevisionError, match=f"is the name of refs/tags/{short}"):
        named_commit(GitProcess(job.path), short, "--base")


def test_a_whole_id_is_that_commit_whatever_is_called_so(here: Checkout) -> None:
    whole = commit_of(here, "main")
    here.git("update-ref", f"refs/tags/{whole}", commit_of(here, "origin/topic"))
    assert named_commit(GitProcess(here.path), whole, "--base") == whole


def test_a_name_of_the_length_of_another_kind_of_id_is_no_revision(here: Checkout) -> None:
    here.git("update-ref", f"refs/tags/{'a1' * 32}", commit_of(here, "origin/topic"))
    with pytest.raises(RevisionError, match="is not a revision"):
        named_commit(GitProcess(here.path), "a1" * 32, "--base")


def test_a_year_is_a_name_and_a_short_id_without_a_reference_is_a_commit(here: Checkout) -> None:
    here.git("tag", "2024", "origin/topic")
    git = GitProcess(here.path)
    assert named_commit(git, "2024", "--base") == commit_of(here, "origin/topic")
    assert named_commit(git, commit_of(here, "main")[:9], "--base") == commit_of(here, "main")


KEY = "Tunegate-Waiver"


def test_a_branchs_trailers_are_read_newest_first_without_the_bases(tmp_path: Path) -> None:
    checkout = new_repository(tmp_path / "r")
    base = checkout.commit({"a": b"1"}, f"one\n\n{KEY}: {{of: main}}")
    first = checkout.commit(
        {"a": b"2"}, f"two\n\nWords.\n\nSigned-off-by: A\n{KEY}: {{of: two,\n  folded: yes}}"
    )
    second = checkout.commit({"a": b"3"}, f"three\n\n{KEY}: x\n{KEY}: y\nTunegate-Other: z")
    head = checkout.commit({"a": b"4"}, f"four {KEY}: no trailer\n\nNor is {KEY}: this one here.")
    found = GitRepository(checkout.path).trailers(base, head, KEY)
    expected = [(second, "x"), (second, "y"), (first, "{of: two, folded: yes}")]
    assert [(each.commit, each.value) for each in found] == expected
    many = checkout.commit({"a": b"5"}, "five\n\n" + f"{KEY}: x\n" * 1001)
    with pytest.raises(RevisionError, match="at most 1000 are read"):
        GitRepository(checkout.path).trailers(head, many, KEY)
    assert len(GitRepository(checkout.path).trailers(head, many, KEY, may_fetch=False)) == 1000


def test_a_wrong_clock_hides_no_release_and_revives_no_trailer(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "r")
    start = origin.commit({"a": b"1"}, f"old\n\n{KEY}: old", at=4_000_000_000)
    origin.git("tag", "v1.0")
    base = [origin.commit({"a": b"2"}, at=100_000_000 + day) for day in range(9)][-1]
    origin.git("checkout", "-q", "-b", "topic", start)
    origin.commit({"b": b"1"}, f"new\n\n{KEY}: new", at=4_000_000_001)
    origin.git("checkout", "-q", "main")
    head = origin.merge("topic")
    assert [each.value for each in GitRepository(origin.path).trailers(base, head, KEY)] == ["new"]
    assert GitHistory(origin.path).since_release(base, "v*").release == "v1.0"


def test_a_shallow_clone_takes_no_older_trailer_for_one_of_the_branch(tmp_path: Path) -> None:
    origin = new_repository(tmp_path / "r")
    origin.commit({"a": b"1"}, f"old\n\n{KEY}: old")
    base = origin.commit({"a": b"2"}, "base")
    origin.git("branch", "topic", f"{base}~1")
    origin.git("checkout", "-q", "topic")
    origin.commit({"b": b"3"}, f"new\n\n{KEY}: new")
    origin.git("checkout", "-q", "main")
    head = origin.merge("topic")
    for fetches, values in ((False, []), (True, ["new"])):
        here = origin.clone("--depth=1")
        here.git("fetch", "-q", "--depth=1", "origin", base)
        found = GitRepository(here.path).trailers(base, head, KEY, may_fetch=fetches)
        assert [each.value for each in found] == values
