import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from tunegate.artifacts import artifact_io
from tunegate.artifacts.inputs import Files, InputRule
from tunegate.errors import ArtifactError, OutputError
from tunegate.system.output.artifact_file import (
    ArtifactFile,
    ArtifactTensor,
    BuildDirectories,
    built_artifact,
    files_in,
)

ARTIFACT = ArtifactFile(
    runtime="tvm",
    file="model.so",
    inputs=(ArtifactTensor("x", (1, 8), "float32"),),
    outputs=(),
    threads=2,
)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    (tmp_path / "model.so").write_bytes(b"code")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "w.bin").write_bytes(b"numbers")
    return tmp_path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_writing_again_sees_what_has_changed(build: Path) -> None:
    ARTIFACT.write(build)
    (build / "model.so").write_bytes(b"other code")
    assert files_in(build) != ArtifactFile.read(build).files
    ARTIFACT.write(build)
    assert files_in(build) == ArtifactFile.read(build).files


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_a_directory_without_a_readable_artifact_is_refused(
    build: Path, content: bytes | None
) -> None:
    if content is not None:
        (build / "artifact.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"artifact\.json"):
        ArtifactFile.read(build)


def test_arrays_that_the_user_gave_go_with_the_artifact(build: Path, tmp_path: Path) -> None:
    given = tmp_path / "elsewhere.npy"
    np.save(given, np.arange(8.0))
    rule = InputRule(Files((str(given),), ("inputs/x.npy",)), "given")
    tensor = ArtifactTensor("x", (8,), "float32", rule)
    replace(ARTIFACT, inputs=(tensor,)).write(build)
    given.unlink()
    assert str(tmp_path) not in (build / "artifact.json").read_text()
    (found,) = ArtifactFile.read(build).inputs
    assert found.rule is not None
    assert isinstance(found.rule.values, Files)
    (file,) = found.rule.values.files
    assert np.load(file).tolist() == list(range(8))
    assert "inputs/0-0.npy" in ArtifactFile.read(build).files
    ArtifactFile.read(build).write(build)
    assert ArtifactFile.read(build).inputs == (found,)


# An artifact that lies somewhere is known by its bytes, not by what it says of itself.


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
    artifact_io.write(tmp_path / "a" / "artifact.json", replace(said, file=name))
    with pytest.raises(ArtifactError, match=r"that .*artifact\.json names"):
        built_artifact(tmp_path / "a")


def test_a_directory_above_an_artifact_is_told_from_one(tmp_path: Path) -> None:
    key_of(tmp_path / "a", b"code")
    with pytest.raises(ArtifactError, match=r"artifact\.json: not found.*name such a directory\.$"):
        built_artifact(tmp_path)


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
    artifact_io.write(tmp_path / "a" / "artifact.json", replace(said, inputs=(given,)))
    with pytest.raises(ArtifactError, match="lies outside of it"):
        built_artifact(tmp_path / "a")


def test_an_edited_description_is_no_artifact(tmp_path: Path) -> None:
    key_of(tmp_path / "a", b"code")
    file = tmp_path / "a" / "artifact.json"
    file.write_text(file.read_text().replace('"threads": 1', '"threads": 2'))
    with pytest.raises(ArtifactError, match="not as tunegate wrote it"):
        built_artifact(tmp_path / "a")


def directory(at: Path, library: str) -> Path:
    at.mkdir(parents=True)
    (at / "model.so").write_text(library)
    ArtifactFile(runtime="tvm", file="model.so", inputs=(), outputs=(), threads=1).write(at)
    return at


def test_the_chosen_build_replaces_what_was_there_and_the_others_go(tmp_path: Path) -> None:
    at = directory(tmp_path / "head", "of an earlier run")
    chosen = directory(tmp_path / "head-tvm", "chosen")
    other = directory(tmp_path / "head-onnxruntime", "other")
    digest = BuildDirectories().keep(chosen, [other], at)
    assert [path.name for path in tmp_path.iterdir()] == ["head"]
    assert (at / "model.so").read_text() == "chosen"
    BuildDirectories().check(at, digest)


def test_a_build_that_is_gone_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"head: cannot be written"):
        BuildDirectories().keep(tmp_path / "nothing", [], tmp_path / "head")


def test_another_build_in_its_place_is_found_out(tmp_path: Path) -> None:
    digest = BuildDirectories().keep(directory(tmp_path / "a", "ours"), [], tmp_path / "head")
    shutil.rmtree(tmp_path / "head")
    directory(tmp_path / "head", "another run's")
    with pytest.raises(ArtifactError, match=r"head: another build than the one that was made"):
        BuildDirectories().check(tmp_path / "head", digest)


def test_an_exchanged_library_is_found_out(tmp_path: Path) -> None:
    digest = BuildDirectories().keep(directory(tmp_path / "a", "ours"), [], tmp_path / "head")
    (tmp_path / "head" / "model.so").write_text("slow")
    with pytest.raises(ArtifactError, match=r"model\.so: not the file that .*artifact\.json names"):
        BuildDirectories().check(tmp_path / "head", digest)
