from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tunegate.errors import ArtifactError, OutputError
from tunegate.system.output.artifact_file import ArtifactFile, BuildDirectories


def directory(at: Path, library: str) -> Path:
    at.mkdir(parents=True)
    (at / "model.so").write_text(library)
    file = ArtifactFile(runtime="tvm", file="model.so", inputs=(), outputs=(), threads=1)
    file.write(at)
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
