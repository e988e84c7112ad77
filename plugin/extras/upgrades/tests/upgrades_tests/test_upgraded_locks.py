"""Changes of watched files are found, in real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.git_repository import Checkout, new_repository

from tunegate.artifacts.changes import Revisions
from tunegate.config import WatchConfig
from tunegate.system.git.repository import GitRepository
from tunegate_upgrades.lock_files.lock import LockFileError
from tunegate_upgrades.upgraded_locks import WatchedChanges, watched_changes

WATCH = WatchConfig(files=("*.txt", "Dockerfile"))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    made.commit({"r.txt": b"a==1\n", "Dockerfile": b"FROM python:3.11\n", "x.md": b"1"})
    return made


def after(
    checkout: Checkout, files: dict[str, bytes | None], watch: WatchConfig = WATCH
) -> WatchedChanges:
    base = checkout.git("rev-parse", "HEAD")
    revisions = Revisions(base=base, head=checkout.commit(files))
    return watched_changes(GitRepository(checkout.path), revisions, watch)


def test_a_changed_pin_is_found_with_both_sides(checkout: Checkout) -> None:
    (lock,) = after(checkout, {"r.txt": b"a==2\n"}).locks
    assert lock.base is not None
    assert (lock.base.pins["a"].version, lock.head.pins["a"].version) == ("1", "2")


@pytest.mark.parametrize(
    "text",
    [b"# why\na==1\n", b"a == 1\n", "a==1\n".encode("utf-8-sig"), "a==1\r\n".encode("utf-16")],
)
def test_other_words_for_the_same_pins_are_no_change(checkout: Checkout, text: bytes) -> None:
    assert after(checkout, {"r.txt": text, "x.md": b"2"}) == WatchedChanges()


def test_whatever_else_changed_beside_the_same_pins_is_a_line(checkout: Checkout) -> None:
    """An extra brings other packages, and an edge of a lock decides who gets one."""
    others = b"b==1; sys_platform == 'win32'\n"
    checkout.commit({"r.txt": b"-r more.in\n" + others, "more.in": b"a==1\n"})
    for files in (
        {"more.in": b"a[gpu]==1\n", "r.txt": b"-r more.in\n" + others},
        {"r.txt": b"-r more.in\n" + others.replace(b"1", b"2"), "more.in": b"a[x]==1\n"},
    ):
        *_, note = after(checkout, {**files}).notes
        assert note.startswith("r.txt: changed, and pins the same here")


def test_nothing_is_read_without_a_glob(checkout: Checkout) -> None:
    assert after(checkout, {"r.txt": b"what is this\n"}, WatchConfig()) == WatchedChanges()


def test_a_glob_that_watches_nothing_is_told(checkout: Checkout) -> None:
    watch = WatchConfig(files=("r.txt", "locks/*.txt"))
    (said,) = after(checkout, {"x.md": b"2"}, watch).notes
    assert said == "watch.files: locks/*.txt matches no committed file, so it watches nothing"
    assert after(checkout, {"r.txt": None}, watch).notes == (said,)


def test_a_file_that_was_renamed_is_compared_with_what_it_was(checkout: Checkout) -> None:
    found = after(checkout, {"r.txt": None, "s.txt": b"a==2\n"})
    (lock,) = found.locks
    assert lock.base is not None
    assert found.policy_changes == ()


def test_a_file_that_is_gone_loosens_the_gate(checkout: Checkout) -> None:
    found = after(checkout, {"r.txt": None})
    (change,) = found.policy_changes
    assert (change.key, change.old, change.new, change.weakens) == (
        "watch.files",
        "r.txt",
        "deleted",
        True,
    )


def test_a_new_file_has_nothing_to_compare_with(checkout: Checkout) -> None:
    (lock,) = after(checkout, {"s.txt": b"a==1\n"}).locks
    assert (lock.base, lock.reason) == (None, "s.txt is new")


def test_a_pin_for_another_python_that_moves_is_told(checkout: Checkout) -> None:
    text = b"a==1\nfast==1 ; python_version < '3'\n"
    checkout.commit({"r.txt": text})
    for other in (text.replace(b"fast==1", b"fast==2"), text.replace(b"'3'", b"'3.1'")):
        found = after(checkout, {"r.txt": other})
        assert found.locks == ()
        assert found.notes[0].startswith("r.txt: fast changed for another Python or platform than")
    assert after(checkout, {"x.md": b"3"}).notes == ()


def test_a_base_that_cannot_be_read_blocks_nobody(checkout: Checkout) -> None:
    checkout.commit({"r.txt": b"what is this\n"})
    (lock,) = after(checkout, {"r.txt": b"a==1\n"}).locks
    assert lock.base is None
    assert "at the base, r.txt:1: no requirement" in lock.reason


@pytest.mark.parametrize("text", [b"what is this\n", b"\xff\xfe==1\n"])
def test_a_head_that_cannot_be_read_is_told(checkout: Checkout, text: bytes) -> None:
    with pytest.raises(LockFileError, match=r"r\.txt"):
        after(checkout, {"r.txt": text})


def test_a_link_is_not_followed(checkout: Checkout) -> None:
    (checkout.path / "r.txt").unlink()
    (checkout.path / "r.txt").symlink_to("/etc/passwd")
    with pytest.raises(LockFileError, match="link"):
        after(checkout, {})


def test_an_included_file_counts_though_nobody_watches_it(checkout: Checkout) -> None:
    checkout.commit({"r.txt": b"-r more.in\n", "more.in": b"a==1\n"})
    (lock,) = after(checkout, {"more.in": b"a==2\n"}).locks
    assert lock.head.pins["a"].version == "2"


def test_another_base_image_is_told_and_not_built(checkout: Checkout) -> None:
    (note,) = after(checkout, {"Dockerfile": b"FROM python:3.12\n"}).notes
    assert note == (
        "Dockerfile: changed from line 1 (FROM) on; base image python:3.11 -> python:3.12: "
        "the image is not built, so nothing in it is measured"
    )
    assert after(checkout, {"Dockerfile": b"# why\nFROM python:3.12\n\n"}).notes == ()


def test_a_runtime_that_an_image_gets_by_other_commands_is_told_where_it_changes(
    checkout: Checkout,
) -> None:
    text = b"FROM python:3.11\nARG ORT=1.19.2\nRUN curl -LO https://x/ort-${ORT}.tgz\n"
    checkout.commit({"Dockerfile": text})
    assert after(checkout, {"x.md": b"2"}).notes == ()
    (note,) = after(checkout, {"Dockerfile": text.replace(b"1.19", b"1.21")}).notes
    assert note.startswith("Dockerfile: changed from line 2 (ARG) on: the image is not built")
    (note,) = after(checkout, {"Dockerfile": b"FROM python:3.11\n"}).notes
    assert note.startswith("Dockerfile: ARG is gone at its end: the image")


def test_what_a_watched_dockerfile_installs_itself_is_told_every_time(checkout: Checkout) -> None:
    line = b"ARG TAG=3.11\nFROM python:${TAG}\nRUN pip install onnxruntime=="
    checkout.commit({"Dockerfile": line + b"1.19.2\n"})
    unchanged = after(checkout, {"x.md": b"2"}).notes
    assert [note.partition(" installed")[0] for note in unchanged] == [
        "Dockerfile:3: onnxruntime==1.19.2"
    ]
    changed = after(checkout, {"Dockerfile": line.replace(b"3.11", b"3.12") + b"1.20.1\n"}).notes
    whole, installed = changed
    assert "base image python:3.11 -> python:3.12" in whole
    assert "packages onnxruntime==1.19.2, onnxruntime==1.20.1: the image is not built" in whole
    assert installed.startswith("Dockerfile:3: onnxruntime==1.20.1 installed here is watched")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("RUN pip install --no-cache-dir apache-tvm=={} numpy", "apache-tvm"),
        ("RUN conda install -y -c conda-forge tvm={}", "tvm"),
        ('RUN ["uv", "pip", "install", "apache-tvm=={}"]', "apache-tvm"),
        ("RUN apt-get update && \\\n    pip install apache-tvm-ffi=={}", "apache-tvm-ffi"),
        ("ARG TVM={}\nRUN pip install apache-tvm==${{TVM}}", "apache-tvm"),
        ("ENV TVM {}\nRUN pip install Apache_TVM==$TVM", "apache-tvm"),
        ("RUN conda install conda-forge::tvm={}", "tvm"),
        ("RUN pip install apache-tvm==1.0\nFROM a\nRUN pip install apache-tvm=={}", "apache-tvm"),
    ],
)
def test_a_dockerfile_that_moves_the_compiler_is_a_policy_change(
    checkout: Checkout, line: str, name: str
) -> None:
    def text(version: str) -> bytes:
        return f"FROM python:3.11\n{line.format(version)}\n".encode()

    checkout.commit({"Dockerfile": text("0.27.0")})
    assert after(checkout, {"x.md": b"2"}).policy_changes == ()
    (change,) = after(checkout, {"Dockerfile": text("0.28.0")}).policy_changes
    assert (change.key, change.weakens) == (f"Dockerfile: {name}", True)
    assert (change.old[:6], change.new[:6]) == ("0.27.0", "0.28.0")
