from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_onnx import matmul_model, save
from tunegate.errors import ModelError
from tunegate.models.file_pair import FilePair


def test_each_file_is_one_revision_of_the_model(tmp_path: Path) -> None:
    save(matmul_model(), tmp_path / "old" / "a.onnx")
    save(matmul_model(rows=8), tmp_path / "new" / "b.onnx")
    pair = FilePair(tmp_path / "old" / "a.onnx", tmp_path / "new" / "b.onnx")
    for side, name in (("base", "old/a.onnx"), ("head", "new/b.onnx")):
        copy = pair.export_model(pair.version(side, "b.onnx"), tmp_path / "work" / side)
        assert copy.read_bytes() == (tmp_path / name).read_bytes()


def test_different_files_are_different_versions(tmp_path: Path) -> None:
    save(matmul_model(), tmp_path / "a.onnx")
    save(matmul_model(rows=8), tmp_path / "b.onnx")
    pair = FilePair(tmp_path / "a.onnx", tmp_path / "b.onnx")
    digests = {pair.version(side, "b.onnx").content_digest for side in ("base", "head")}
    assert len(digests) == 2


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_text("nonsense")
    pair = FilePair(tmp_path / "a.onnx", tmp_path / "a.onnx")
    with pytest.raises(ModelError, match=r"a\.onnx: not an ONNX file"):
        pair.export_model(pair.version("head", "a.onnx"), tmp_path / "work")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"a\.onnx: no such file"):
        FilePair(tmp_path / "a.onnx", tmp_path / "b.onnx")
