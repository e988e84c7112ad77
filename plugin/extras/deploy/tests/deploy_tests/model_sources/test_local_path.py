from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.models.external_data import model_with_data
from tests.support.small_onnx import matmul_model, save

from tunegate.errors import ConfigError, ModelError
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.local_path import LocalPath


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
    (tmp_path / "loop.onnx").symlink_to("loop.onnx")
    for name in ("m.onnx", "loop.onnx"):
        with pytest.raises(ConfigError, match="no such file"):
            LocalPath(tmp_path / name).resolve()


def test_a_directory_without_an_artifact_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a directory without an artifact\.json"):
        LocalPath(tmp_path).resolve()


def test_a_data_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model_with_data("weights.bin"))
    (tmp_path / "into").mkdir()
    with pytest.raises(ModelError, match=r"its file 'weights\.bin' cannot be read \(No such file"):
        LocalPath(tmp_path / "m.onnx").download(tmp_path / "into", ByteCount(2**20))


def test_a_data_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model_with_data("weights.bin"))
    (tmp_path / "secret").write_text("what only this machine may read")
    (tmp_path / "weights.bin").symlink_to(tmp_path / "secret")
    (tmp_path / "into").mkdir()
    with pytest.raises(ModelError, match=r"its file 'weights\.bin' is not a plain file, or is"):
        LocalPath(tmp_path / "m.onnx").download(tmp_path / "into", ByteCount(2**20))
