"""An artifact that lies somewhere is known by its bytes, not by what it says of itself."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tunegate.artifacts import artifact_io
from tunegate.artifacts.inputs import Files, InputRule
from tunegate.errors import ArtifactError
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor, built_artifact


def key_of(directory: Path, library: bytes, *, threads: int = 1, model: str = "m") -> str:
    directory.mkdir()
    (directory / "model.so").write_bytes(library)
    ArtifactFile(
        runtime="tvm",
        file="model.so",
        inputs=(),
        outputs=(),
        threads=threads,
        model=model,
        key="claimed",
    ).write(directory)
    return built_artifact(directory).key


def test_the_same_bytes_have_the_same_key_wherever_they_lie(tmp_path: Path) -> None:
    assert key_of(tmp_path / "a", b"code") == key_of(tmp_path / "b", b"code", model="other")


def test_other_bytes_have_another_key_whatever_they_claim(tmp_path: Path) -> None:
    assert key_of(tmp_path / "a", b"code") != key_of(tmp_path / "b", b"slow")


def test_other_threads_have_another_key(tmp_path: Path) -> None:
    assert key_of(tmp_path / "a", b"code") != key_of(tmp_path / "b", b"code", threads=2)


def test_a_file_beside_counts(tmp_path: Path) -> None:
    first = key_of(tmp_path / "a", b"code")
    (tmp_path / "a" / "model.data").write_bytes(b"weights")
    assert built_artifact(tmp_path / "a").key != first


@pytest.mark.parametrize("name", ["../outside.so", "model.data"])
def test_a_file_that_was_not_built_is_not_loaded(name: str, tmp_path: Path) -> None:
    (tmp_path / "outside.so").write_bytes(b"code")
    key_of(tmp_path / "a", b"code")
    (tmp_path / "a" / "model.data").write_bytes(b"code")
    said = ArtifactFile.read(tmp_path / "a")
    artifact_io.write(tmp_path / "a" / "artifact.json", msgspec.structs.replace(said, file=name))
    with pytest.raises(ArtifactError, match=r"that .*artifact\.json names"):
        built_artifact(tmp_path / "a")


def test_an_artifact_with_a_link_is_refused(tmp_path: Path) -> None:
    key_of(tmp_path / "a", b"code")
    (tmp_path / "secret").write_bytes(b"code")
    (tmp_path / "a" / "model.so").unlink()
    (tmp_path / "a" / "model.so").symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactError, match=r"model\.so: a symbolic link, which is not followed"):
        built_artifact(tmp_path / "a")


@pytest.mark.parametrize("file", ["/etc/hostname", "../secret.npy"])
def test_values_that_lie_outside_of_the_artifact_are_refused(tmp_path: Path, file: str) -> None:
    key_of(tmp_path / "a", b"code")
    rule = InputRule(Files(files=(file,)))
    said = ArtifactFile.read(tmp_path / "a")
    given = ArtifactTensor(name="x", shape=(1,), dtype="float32", rule=rule)
    artifact_io.write(
        tmp_path / "a" / "artifact.json", msgspec.structs.replace(said, inputs=(given,))
    )
    with pytest.raises(ArtifactError, match="lies outside of it"):
        built_artifact(tmp_path / "a")


def test_a_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    key_of(tmp_path / "a", b"code")
    (tmp_path / "a" / "model.so").unlink()
    with pytest.raises(ArtifactError, match=r"model\.so: missing"):
        built_artifact(tmp_path / "a")


def test_an_edited_description_is_no_artifact(tmp_path: Path) -> None:
    key_of(tmp_path / "a", b"code")
    file = tmp_path / "a" / "artifact.json"
    file.write_text(file.read_text().replace('"threads": 1', '"threads": 2'))
    with pytest.raises(ArtifactError, match="not as tunegate wrote it"):
        built_artifact(tmp_path / "a")
