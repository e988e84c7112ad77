from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from tests.support.small_onnx import matmul_model, save

from tunegate.artifacts.changes import ModelPin
from tunegate.errors import ModelError
from tunegate_deploy.model_sources.download_limits import DownloadLimits
from tunegate_deploy.model_sources.fetched_model import fetched_model
from tunegate_deploy.model_sources.local_path import LocalPath


def test_a_model_is_pinned_to_its_content(tmp_path: Path) -> None:
    file = save(matmul_model(), tmp_path / "m.onnx")
    digest = sha256(file.read_bytes()).hexdigest()
    found = fetched_model(LocalPath(file), tmp_path / "into", DownloadLimits(), digest)
    assert found.pin == ModelPin(address=str(file), version="", sha256=digest)
    assert found.is_local


def test_other_content_than_the_address_says_is_refused(tmp_path: Path) -> None:
    file = save(matmul_model(), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="as the address says"):
        fetched_model(LocalPath(file), tmp_path / "into", DownloadLimits(), "0" * 64)


def test_a_model_of_too_many_bytes_names_its_address(tmp_path: Path) -> None:
    file = save(matmul_model(), tmp_path / "m.onnx")
    with pytest.raises(ModelError, match=r"m\.onnx: the model has more than"):
        fetched_model(LocalPath(file), tmp_path / "into", DownloadLimits(bytes=100))
