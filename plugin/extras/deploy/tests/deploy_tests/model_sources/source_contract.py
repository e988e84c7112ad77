"""The promises of every address, whatever answers it: the tests of one inherit these."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from tests.support.small_onnx import matmul_model

from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError
from tunegate_deploy.model_sources.addressed_model import AddressedModel
from tunegate_deploy.model_sources.download_limits import ByteCount, DownloadLimits
from tunegate_deploy.model_sources.fetched_model import fetched_model

LIMITS = DownloadLimits(bytes=2**20, seconds=20)


def files_of(seed: int = 0, *, directory: Path) -> dict[str, bytes]:
    """A model and its data file by their names."""
    directory.mkdir()
    model = matmul_model(seed=seed)
    model.doc_string = f"version {seed}"
    onnx.save(
        model,
        directory / "m.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    return {file.name: file.read_bytes() for file in directory.iterdir()}


class SourceContract:
    """`there` puts files under one name and returns the address as a model; `absent` names
    nothing that is there."""

    def there(self, files: dict[str, bytes]) -> AddressedModel:
        raise NotImplementedError

    def absent(self) -> AddressedModel:
        raise NotImplementedError

    def test_a_model_comes_with_its_data_and_is_pinned(self, tmp_path: Path) -> None:
        model = self.there(files_of(directory=tmp_path / "made"))
        found = fetched_model(model, tmp_path / "into", LIMITS)
        assert onnx.load(found.path).graph.initializer[0].dims == [16, 16]
        assert sorted(file.name for file in found.path.parent.iterdir()) == [
            "m.onnx",
            "weights.bin",
        ]
        assert len(found.pin.sha256) == 64
        assert found.pin.address == model.address

    def test_what_is_no_model_is_refused(self, tmp_path: Path) -> None:
        model = self.there({"m.onnx": b"<html>Sign in</html>"})
        with pytest.raises(ModelError, match="not an ONNX file"):
            fetched_model(model, tmp_path / "into", LIMITS)

    def test_a_model_that_is_too_large_is_refused(self, tmp_path: Path) -> None:
        files = {"m.onnx": matmul_model(inner=600, columns=600).SerializeToString()}
        with pytest.raises(ModelError, match="more than"):
            fetched_model(self.there(files), tmp_path / "into", LIMITS)

    def test_what_is_not_there_is_one_line(self) -> None:
        with pytest.raises(ConfigError) as caught:
            self.absent().resolve()
        assert "\n" not in str(caught.value)

    def test_what_was_resolved_is_what_is_downloaded(self, tmp_path: Path) -> None:
        """A name that moves in between changes nothing, or ends the download."""
        first = files_of(1, directory=tmp_path / "first")
        model = self.there(first)
        model.resolve()
        self.there(files_of(2, directory=tmp_path / "second"))
        (tmp_path / "into").mkdir()
        try:
            found = model.download(tmp_path / "into", ByteCount(2**20))
        except EnvironmentUnfitError:
            assert not (tmp_path / "into" / "weights.bin").exists()
        else:
            assert (found.parent / "weights.bin").read_bytes() == first["weights.bin"]
