from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_onnx import matmul_model, save
from tunegate.edges.model_sources.download_limits import ByteCount
from tunegate.edges.model_sources.local_path import LocalPath
from tunegate.errors import ArtifactError, ConfigError


def test_a_file_is_copied_and_a_link_pinned_to_what_it_leads_to(tmp_path: Path) -> None:
    real = save(matmul_model(), tmp_path / "v2" / "m.onnx")
    (tmp_path / "current").symlink_to(real)
    found = LocalPath(tmp_path / "current")
    assert found.resolve() == str(real)
    (tmp_path / "into").mkdir()
    copy = found.download(tmp_path / "into", ByteCount(2**20))
    assert copy.read_bytes() == real.read_bytes()
    assert LocalPath(real).resolve() == ""


def test_a_path_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        LocalPath(tmp_path / "m.onnx").resolve()


def test_a_directory_without_an_artifact_is_refused(tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    with pytest.raises((ArtifactError, OSError)):
        LocalPath(tmp_path).download(tmp_path / "into", ByteCount(2**20))
