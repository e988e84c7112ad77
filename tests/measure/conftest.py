"""Two artifacts that differ in their work."""

from pathlib import Path

import pytest

from tests.measure.onnx_artifact import artifact
from tests.support.small_onnx import conv_model


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("small")
    return artifact(directory, conv_model(channels=16, out=16, size=48), (1, 16, 48, 48))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("large")
    return artifact(directory, conv_model(channels=16, out=64, size=48), (1, 16, 48, 48))
