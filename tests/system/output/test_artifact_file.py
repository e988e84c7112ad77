from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tunegate.artifacts.inputs import Files, InputRule
from tunegate.errors import ArtifactError
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor, files_in

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


def test_an_artifact_names_every_file_beside_it_by_its_content(build: Path) -> None:
    ARTIFACT.write(build)
    found = ArtifactFile.read(build)
    assert found.files == {"model.so": sha256(b"code"), "weights/w.bin": sha256(b"numbers")}
    assert (found.runtime, found.inputs, found.threads) == ("tvm", ARTIFACT.inputs, 2)


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
    artifact = msgspec.structs.replace(ARTIFACT, inputs=(tensor,))
    artifact.write(build)
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
