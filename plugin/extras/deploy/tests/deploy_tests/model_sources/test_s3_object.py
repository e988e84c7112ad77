from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import boto3
import pytest
from tests.support.servers.moto_server import BUCKET, free_port
from tests.support.small_onnx import matmul_model, save

from deploy_tests.model_sources.source_contract import LIMITS, SourceContract
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate_deploy.model_sources.fetched_model import fetched_model
from tunegate_deploy.model_sources.s3_object import S3Object
from tunegate_deploy.model_sources.source_settings import SourceSettings

_prefixes = itertools.count()
OLD, NEW = (matmul_model(seed=seed).SerializeToString() for seed in (1, 2))


@pytest.fixture
def client(endpoint: str, credentials: None) -> Any:
    return boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1")


class TestS3Object(SourceContract):
    @pytest.fixture(autouse=True)
    def placed(self, client: Any, endpoint: str) -> None:
        self.client, self.endpoint = client, endpoint
        self.prefix = f"deploy-{next(_prefixes)}"

    def there(self, files: dict[str, bytes]) -> S3Object:
        for name, body in files.items():
            self.client.put_object(Bucket=BUCKET, Key=f"{self.prefix}/{name}", Body=body)
        return self.at("m.onnx")

    def absent(self) -> S3Object:
        return self.at("nothing.onnx")

    def at(self, name: str) -> S3Object:
        settings = SourceSettings(endpoint_url=self.endpoint, region="us-east-1")
        return S3Object(f"s3://{BUCKET}/{self.prefix}/{name}", settings)

    def test_a_key_that_changes_while_it_is_read_is_no_model(self, tmp_path: Path) -> None:
        model = self.there({"m.onnx": OLD})
        model.resolve()
        self.there({"m.onnx": NEW})
        with pytest.raises(EnvironmentUnfitError, match="changed since it was read"):
            fetched_model(_Resolved(model), tmp_path / "into", LIMITS)

    def test_a_key_is_replaced_after_a_pass_and_only_if_it_is_what_was_measured(
        self, tmp_path: Path
    ) -> None:
        candidate = save(matmul_model(seed=2), tmp_path / "new" / "m.onnx")
        production = self.there({"m.onnx": OLD})
        production.resolve()
        production.move_to(production, candidate)
        body = self.client.get_object(Bucket=BUCKET, Key=f"{self.prefix}/m.onnx")["Body"].read()
        assert body == candidate.read_bytes()
        with pytest.raises(EnvironmentUnfitError, match="was not replaced"):
            production.move_to(production, candidate)

    def test_what_a_bucket_answers_without_a_body_is_said_in_words(self) -> None:
        with pytest.raises(ConfigError, match=r"none\.onnx: not there \(404\)\.$"):
            self.at("none.onnx").resolve()
        self.there({"m.onnx": b"x"})
        with pytest.raises(ConfigError, match="a versionId may be none of its versions"):
            self.at("m.onnx?versionId=abc").resolve()

    def test_a_public_key_needs_no_credentials_and_a_private_one_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        private = self.there({"m.onnx": OLD})
        key = f"{self.prefix}/public.onnx"
        self.client.put_object(Bucket=BUCKET, Key=key, Body=OLD, ACL="public-read")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        assert self.at("public.onnx").resolve().startswith("ETag")
        with pytest.raises(ConfigError, match=r"No credentials were found\. Give this shell"):
            private.resolve()

    def test_a_version_is_never_moved(self) -> None:
        model = self.at("m.onnx?versionId=abc")
        assert model.address.endswith("m.onnx")
        with pytest.raises(ConfigError, match="without a version"):
            model.require_movable_to(model)


class _Resolved(S3Object):
    """One that has been resolved already."""

    def __init__(self, model: S3Object) -> None:
        self.__dict__.update(model.__dict__)

    def resolve(self) -> str:
        return ""


def test_no_server_and_half_credentials_are_told_apart(
    credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = SourceSettings(endpoint_url=f"http://127.0.0.1:{free_port()}", region="us-east-1")
    with pytest.raises(EnvironmentUnfitError, match="EndpointConnectionError"):
        S3Object("s3://tuning/m.onnx", down).resolve()
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ConfigError, match="Give this shell credentials"):
        S3Object("s3://tuning/m.onnx", down).resolve()
