from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from tests.support.small_onnx import matmul_model

from deploy_tests.model_sources.test_model_files import with_data
from deploy_tests.scripted_web import scripted_web, send
from tunegate.errors import ConfigError, ModelError
from tunegate_deploy.model_sources.download_limits import ByteCount, DownloadLimits
from tunegate_deploy.model_sources.fetched_model import fetched_model
from tunegate_deploy.model_sources.https_file import HttpsFile
from tunegate_deploy.model_sources.source_settings import SourceSettings

MODEL = matmul_model().SerializeToString()


def fetched(url: str, into: Path, limits: DownloadLimits) -> None:
    fetched_model(HttpsFile(url, SourceSettings()), into, limits)


def test_a_file_comes_with_its_data_under_the_same_query(tmp_path: Path) -> None:
    there = with_data(tmp_path / "there")
    answers = {f"/v1/{file.name}": file.read_bytes() for file in there.parent.iterdir()}
    with scripted_web(answers) as (url, asked):
        (tmp_path / "here").mkdir()
        model = HttpsFile(f"{url}/v1/m.onnx?sig=abc", SourceSettings())
        found = model.download(tmp_path / "here", ByteCount(2**20))
    assert onnx.load(found).graph.initializer
    assert asked.lines == ["GET /v1/m.onnx?sig=abc", "GET /v1/weights.bin?sig=abc"]
    assert model.address == f"{url}/v1/m.onnx"


@pytest.mark.parametrize("path", ["/", "/a%2Fb%00", "/x%20y"])
def test_a_name_that_is_none_becomes_a_plain_one(path: str, tmp_path: Path) -> None:
    with scripted_web({path: MODEL}) as (url, _):
        found = HttpsFile(f"{url}{path}", SourceSettings()).download(tmp_path, ByteCount(2**20))
    assert found.name == "model.onnx"


def test_credentials_come_from_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login ci password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "into").mkdir()
    with scripted_web({"/m.onnx": MODEL}) as (url, asked):
        HttpsFile(f"{url}/m.onnx", SourceSettings()).download(tmp_path / "into", ByteCount(2**20))
    assert asked.headers["Authorization"] == "Basic Y2k6c2VjcmV0"


def test_a_page_where_a_model_should_be_is_one_line(tmp_path: Path) -> None:
    with scripted_web({"/m.onnx": b"<html>Sign in"}) as (url, _), pytest.raises(ModelError) as said:
        fetched_model(
            HttpsFile(f"{url}/m.onnx", SourceSettings()), tmp_path / "into", DownloadLimits()
        )
    assert str(said.value) == f"{url}/m.onnx: not an ONNX file, or cut short."


def test_a_body_without_end_is_too_large(tmp_path: Path) -> None:
    large = {"/m.onnx": lambda request: send(request, 200, bytes(5_000_000))}
    limits = DownloadLimits(bytes=1_000_000)
    with scripted_web(large) as (url, _), pytest.raises(ModelError, match="more than"):
        fetched(f"{url}/m.onnx", tmp_path / "into", limits)


def test_a_file_that_is_not_there_is_the_users_to_mend(tmp_path: Path) -> None:
    with scripted_web({}) as (url, _), pytest.raises(ConfigError, match=r"m\.onnx: not there"):
        fetched_model(
            HttpsFile(f"{url}/m.onnx", SourceSettings()), tmp_path / "into", DownloadLimits()
        )
