from __future__ import annotations

import pytest

from tunegate.errors import ConfigError
from tunegate_deploy.model_sources.https_file import HttpsFile
from tunegate_deploy.model_sources.local_path import LocalPath
from tunegate_deploy.model_sources.open_address import open_address
from tunegate_deploy.model_sources.source_settings import SourceSettings


def test_what_is_no_address_is_a_path() -> None:
    for text in ("m.onnx", "models/asr.onnx", "./a#b.onnx", "C:m.onnx"):
        opened = open_address(text, SourceSettings())
        assert isinstance(opened.model, LocalPath)
        assert (opened.model.address, opened.sha256) == (text.removeprefix("./"), "")


def test_a_digest_pins_any_address() -> None:
    opened = open_address(
        f"https://example.com/m.onnx?X-Signature=secret#sha256={'a' * 64}", SourceSettings()
    )
    assert isinstance(opened.model, HttpsFile)
    assert opened.model.address == "https://example.com/m.onnx"
    assert opened.sha256 == "a" * 64


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("ftp://example.com/m.onnx", "no models are taken from ftp:"),
        ("file:///etc/passwd", "no models are taken from file:"),
        ("gopher://user:secret@example.com", "no models"),
        ("http://example.com/m.onnx", "not encrypted"),
        ("https://user:secret@example.com/m.onnx", "credentials in an address"),
        ("https:///m.onnx", "without a host"),
        ("https://exa mple.com/m.onnx", "without a host"),
        ("https://[/m.onnx", "cannot be read"),
        ("https://example.com:99999/m.onnx", "cannot be read"),
        ("m.onnx#sha256=abc", "not 64 digits"),
        ("m.onnx#sha512=abc", "pinned by #sha256= "),
        ("s3://bucket", "write s3://bucket/key"),
        ("oci://ghcr.io/acme/asr", "write oci://registry/repository:tag"),
        ("oci://ghcr.io/acme/asr@sha256:abc", "write oci://registry/repository:tag"),
        ("oci://user:secret@ghcr.io/acme/asr:1", "write oci://registry/repository:tag"),
        ("models:/asr", "write models:/name@alias"),
        ("models:/asr/latest", "write models:/name@alias"),
        ("hf://asr", "write hf://owner/name@revision"),
    ],
)
def test_an_address_that_is_not_taken_is_one_line_without_its_secrets(
    text: str, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        open_address(text, SourceSettings())
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
