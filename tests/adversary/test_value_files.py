"""Files of values that a pull request commits cost a line and no memory, whatever they are."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.models.inputs.test_given_values import Given
from tunegate.config import ValuesConfig
from tunegate.models.inputs import given_values
from tunegate.system.git import repository as git_repository

MOST_BYTES = 4096


@pytest.fixture(name="given")
def _given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    """A repository whose arrays have few bytes at most."""
    monkeypatch.setattr(given_values, "MAX_ARRAY_BYTES", MOST_BYTES)
    return Given(tmp_path)


def said(given: Given, file: str) -> str:
    found = given.rules(ids=ValuesConfig(file=file))
    assert found.rules == {}
    (problem,) = found.problems
    return problem.removeprefix("inputs.ids.values: ")


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("target", ["../outside.npy", "/etc/hostname", "link.npy", "other.npy"])
def test_a_link_is_not_followed_wherever_it_leads(given: Given, target: str) -> None:
    """Out of the checkout, to the runner, to itself, and to a link that leads back."""
    (given.checkout.path.parent / "outside.npy").write_bytes(npy(np.array([1, 2])))
    (given.checkout.path / "link.npy").symlink_to(target)
    (given.checkout.path / "other.npy").symlink_to("link.npy")
    given.checkout.commit({"a": b""})
    assert said(given, "link.npy") == "link.npy is a link: commit the file itself."


def test_a_link_in_place_of_a_directory_leads_nowhere(given: Given) -> None:
    outside = given.checkout.path.parent / "outside"
    outside.mkdir()
    (outside / "ids.npy").write_bytes(npy(np.array([1, 2])))
    (given.checkout.path / "inputs").symlink_to(outside)
    given.checkout.commit({"a": b""})
    assert "no such file in this revision" in said(given, "inputs/ids.npy")


def test_a_pipe_in_place_of_a_file_of_the_runner_is_not_waited_for(
    given: Given, tmp_path: Path
) -> None:
    given.checkout.commit({"a": b""})
    os.mkfifo(tmp_path / "ids.npy")
    assert said(given, f"{tmp_path}/ids.npy") == f"{tmp_path}/ids.npy: no such file."


def test_a_large_file_takes_no_memory_although_it_has_no_blocks(
    given: Given, tmp_path: Path
) -> None:
    given.checkout.commit({"zeros.npy": bytes(MOST_BYTES + 1)})
    with (tmp_path / "sparse.npy").open("wb") as file:
        file.truncate(5 * 2**30)
    assert "has over" in said(given, "zeros.npy")
    assert "it has over" in said(given, f"{tmp_path}/sparse.npy")


def test_a_pointer_takes_no_more_memory_than_a_file(
    given: Given, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git has its few bytes, and Git LFS what it stands for."""
    content = npy(np.zeros(MOST_BYTES))
    oid = hashlib.sha256(content).hexdigest()
    stored = given.checkout.path / f".git/lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}"
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
    given.checkout.commit({"ids.npy": pointer.encode()})
    written: list[int] = []
    write = git_repository._Bounded.write

    def counted(memory: git_repository._Bounded, piece: bytes) -> int:
        written.append(write(memory, piece))
        return written[-1]

    monkeypatch.setattr(git_repository._Bounded, "write", counted)
    assert said(given, "ids.npy") == "ids.npy has over 0 MiB."
    assert sum(written) < MOST_BYTES


def test_an_archive_of_another_compression_is_not_unpacked(given: Given) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("ids.npy", npy(np.zeros(2**20)))
    given.checkout.commit({"ids.npz": stream.getvalue()})
    assert "not compressed as NumPy does it" in said(given, "ids.npz")


def test_a_pickle_that_a_pull_request_puts_over_numbers_is_not_loaded(given: Given) -> None:
    """The base's numbers count, as long as they fit the model."""
    base = given.checkout.commit({"ids.npy": npy(np.array([3, 4]))})
    stream = io.BytesIO()
    np.save(stream, np.array([print, 1], dtype=object), allow_pickle=True)
    head = given.checkout.commit({"ids.npy": stream.getvalue()})
    found = given.rules(base, head, ids=ValuesConfig(file="ids.npy"))
    assert [*found.rules] == ["ids"]
    assert not found.problems
    assert "pickle, which is never loaded" in said(given, "ids.npy")
