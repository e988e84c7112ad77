from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from tests.support.small_onnx import matmul_model

from tunegate.errors import ModelError
from tunegate_deploy.model_sources.download_limits import ByteCount
from tunegate_deploy.model_sources.model_files import (
    bring_files,
    bring_model,
    content_digest,
    data_of,
    require_inside,
    write_file,
)


def with_data(directory: Path, location: str = "weights.bin") -> Path:
    directory.mkdir()
    model = directory / "m.onnx"
    onnx.save(
        matmul_model(), model, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    if location != "weights.bin":
        proto = onnx.load(model, load_external_data=False)
        for tensor in proto.graph.initializer:
            tensor.external_data[0].value = location
        model.write_bytes(proto.SerializeToString())
    return model


def brought(model: Path, into: Path) -> Path:
    into.mkdir()
    return bring_model(
        model.name, into, lambda name: [(model.parent / name).read_bytes()], ByteCount(2**30)
    )


@pytest.mark.parametrize("location", ["weights.bin", "./weights.bin"])
def test_a_model_comes_with_its_data(tmp_path: Path, location: str) -> None:
    found = brought(with_data(tmp_path / "there", location), tmp_path / "here")
    assert onnx.load(found).graph.initializer[0].dims == [16, 16]


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "a/../../b"])
def test_data_outside_of_the_directory_is_refused(tmp_path: Path, location: str) -> None:
    with pytest.raises(ModelError, match="outside the model's directory"):
        brought(with_data(tmp_path / "there", location), tmp_path / "here")


def test_what_is_no_onnx_file_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.onnx"
    page.write_bytes(b"<html>Sign in</html>")
    with pytest.raises(ModelError, match="not an ONNX file"):
        data_of(page)


@pytest.mark.parametrize("name", ["", "..", "/a", "a/../../b", "a\\b", "a\nb", "x" * 2000])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ModelError):
        require_inside(name)


def test_a_file_is_never_written_twice_nor_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="twice"):
        write_file(tmp_path / "link", [b"x"], ByteCount(10))
    assert not (tmp_path / "elsewhere").exists()


def test_a_multitude_of_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunegate_deploy.model_sources.model_files.MAX_FILES", 20)
    names = [f"{number}" for number in range(21)]
    with pytest.raises(ModelError, match="more than 20 files"):
        bring_files(names, tmp_path, lambda _: (), ByteCount(10))


def test_data_without_end_is_too_large(tmp_path: Path) -> None:
    def endless(_: str) -> Iterator[bytes]:
        while True:
            yield bytes(1000)

    with pytest.raises(ModelError, match="more than"):
        bring_files(["weights"], tmp_path, endless, ByteCount(10_000))


def test_digests_are_those_that_sha256sum_gives(tmp_path: Path) -> None:
    model = with_data(tmp_path / "m")
    listed = subprocess.run(
        "sha256sum m.onnx weights.bin | sha256sum", shell=True, cwd=model.parent,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert content_digest(model) == listed.stdout.split()[0]
    (model.parent / "weights.bin").unlink()
    assert content_digest(model) == hashlib.sha256(model.read_bytes()).hexdigest()
