from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.small_onnx import matmul_model

from deploy_tests.model_sources.source_contract import LIMITS, SourceContract
from deploy_tests.scripted_web import scripted_web
from deploy_tests.small_registry import SmallRegistry
from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError
from tunegate_deploy.model_sources.fetched_model import FetchedModel, fetched_model
from tunegate_deploy.model_sources.oci_artifact import OciArtifact
from tunegate_deploy.model_sources.source_settings import SourceSettings

MODEL = matmul_model().SerializeToString()


class Served:
    def __init__(self, registry: SmallRegistry, host: str) -> None:
        self.registry, self.host = registry, host

    def at(self, reference: str) -> OciArtifact:
        mark = "@" if reference.startswith("sha256:") else ":"
        return OciArtifact(f"oci://{self.host}/acme/asr{mark}{reference}", SourceSettings())

    def fetched(self, reference: str, into: Path) -> FetchedModel:
        return fetched_model(self.at(reference), into, LIMITS)


@pytest.fixture
def served() -> Iterator[Served]:
    registry = SmallRegistry()
    with scripted_web(registry.answers) as (url, _):
        yield Served(registry, url.removeprefix("http://"))


class TestOciArtifact(SourceContract):
    @pytest.fixture(autouse=True)
    def placed(self, served: Served) -> None:
        self.served = served

    def there(self, files: dict[str, bytes]) -> OciArtifact:
        self.served.registry.push("live", files)
        return self.served.at("live")

    def absent(self) -> OciArtifact:
        return self.served.at("nothing")


def test_a_digest_names_a_manifest(served: Served, tmp_path: Path) -> None:
    digest = served.registry.push("live", {"m.onnx": MODEL})
    assert served.fetched(digest, tmp_path / "into").pin.version == digest


@pytest.mark.parametrize("name", ["../m.onnx", "/etc/cron.d/m.onnx", "a/../../m.onnx", "a\\m.onnx"])
def test_a_title_that_leads_elsewhere_is_refused(served: Served, name: str, tmp_path: Path) -> None:
    served.registry.push("live", {name: MODEL})
    with pytest.raises(ModelError, match="outside the model's directory"):
        served.fetched("live", tmp_path / "into")


def test_other_bytes_than_the_digest_says_are_refused(served: Served, tmp_path: Path) -> None:
    served.registry.push("live", {"m.onnx": MODEL})
    (blob,) = (path for path in served.registry.answers if "/blobs/" in path)
    for body in (MODEL[:-1] + b"x", MODEL[:-1], MODEL * 2):
        served.registry.answers[blob] = body
        with pytest.raises(ModelError, match="other bytes than its digest says"):
            served.fetched("live", tmp_path / str(len(body) + body[-1]))


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (b"nonsense", "no files"),
        (b'{"manifests": []}', "no files"),
        (b'{"layers": []}', "0 ONNX files"),
        (b'{"layers": [{"digest": 7}]}', "no files"),
        (json.dumps({"layers": [{"digest": "d", "size": 1}] * 10_001}).encode(), "10,000 layers"),
    ],
)
def test_a_manifest_that_is_none_is_refused(
    served: Served, manifest: bytes, problem: str, tmp_path: Path
) -> None:
    served.registry.put("live", manifest)
    with pytest.raises(ModelError, match=problem) as caught:
        served.fetched("live", tmp_path / "into")
    assert str(caught.value).startswith("oci://127.0.0.1:")


def test_a_huge_manifest_is_not_read(served: Served) -> None:
    served.registry.put("live", b" " * (5 * 2**20))
    with pytest.raises(EnvironmentUnfitError, match="more than"):
        served.at("live").resolve()


def test_another_manifest_than_was_asked_for_is_refused(served: Served) -> None:
    digest = served.registry.push("live", {"m.onnx": MODEL})
    served.registry.answers[f"/v2/acme/asr/manifests/{digest}"] = b'{"layers": []}'
    with pytest.raises(ModelError, match="another manifest"):
        served.at(digest).resolve()


def test_a_packed_directory_and_several_models_are_refused(served: Served, tmp_path: Path) -> None:
    served.registry.push("packed", {"m": MODEL}, **{"io.deis.oras.content.unpack": "true"})
    with pytest.raises(ModelError, match="packed directory"):
        served.fetched("packed", tmp_path / "1")
    served.registry.push("two", {"a.onnx": MODEL, "b.onnx": MODEL + b""})
    with pytest.raises(ModelError, match=r"2 ONNX files, where one is needed: a\.onnx, b\.onnx"):
        served.fetched("two", tmp_path / "2")


def test_a_tag_is_moved_only_while_it_names_what_was_measured(served: Served) -> None:
    served.registry.push("live", {"m.onnx": MODEL})
    wanted = served.registry.push("2", {"m.onnx": matmul_model(seed=2).SerializeToString()})
    production, candidate = served.at("live"), served.at("2")
    production.resolve()
    candidate.resolve()
    production.require_movable_to(candidate)
    assert production.move_to(candidate, Path()) == wanted
    assert served.at("live").resolve() == wanted
    with pytest.raises(EnvironmentUnfitError, match="moved since it was read"):
        production.move_to(candidate, Path())


def test_only_a_tag_of_the_same_repository_is_moved(served: Served) -> None:
    other = OciArtifact("oci://example.com/acme/asr:2", SourceSettings())
    with pytest.raises(ConfigError, match="same repository"):
        served.at("live").require_movable_to(other)
    with pytest.raises(ConfigError, match="moves a tag"):
        served.at(f"sha256:{'a' * 64}").require_movable_to(other)


def test_a_login_is_that_of_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = SmallRegistry(login="ci:secret")
    registry.push("live", {"m.onnx": MODEL})
    with scripted_web(registry.answers) as (url, _):
        served = Served(registry, url.removeprefix("http://"))
        with pytest.raises(ConfigError, match="401") as caught:
            served.at("live").resolve()
        assert "secret" not in str(caught.value)
        monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
        auth = {"auths": {served.host: {"auth": "Y2k6c2VjcmV0"}}}
        (tmp_path / "config.json").write_text(json.dumps(auth))
        assert served.fetched("live", tmp_path / "into").path.read_bytes() == MODEL
